#include "sandbox/plan.h"

#include <cstring>

namespace skein::sandbox {
namespace {

constexpr std::uint64_t kMagic = 0x736b65696e000003ULL;

struct Writer {
    std::string bytes;
    void operator()(std::uint64_t value) {
        for (int i = 0; i < 8; ++i) bytes += static_cast<char>(value >> (8 * i) & 0xff);
    }
    void operator()(const std::string& text) {
        (*this)(text.size());
        bytes += text;
    }
    void operator()(const PlanMount& mount);
    template <class T>
    void operator()(const std::vector<T>& list) {
        (*this)(list.size());
        for (const T& element : list) (*this)(element);
    }
};

struct Reader {
    std::string_view bytes;
    bool ok = true;
    void operator()(std::uint64_t& value) {
        value = 0;
        if (bytes.size() < 8) {
            ok = false;
            return;
        }
        for (int i = 0; i < 8; ++i)
            value |= std::uint64_t{static_cast<unsigned char>(bytes[static_cast<std::size_t>(i)])}
                     << (8 * i);
        bytes.remove_prefix(8);
    }
    void operator()(std::string& text) {
        std::uint64_t size = 0;
        (*this)(size);
        if (!ok || size > bytes.size()) {
            ok = false;
            return;
        }
        text.assign(bytes.substr(0, size));
        bytes.remove_prefix(size);
    }
    void operator()(PlanMount& mount);
    template <class T>
    void operator()(std::vector<T>& list) {
        std::uint64_t size = 0;
        (*this)(size);
        // An element takes at least 8 bytes: a lying length cannot make us allocate.
        if (!ok || size > bytes.size() / 8) {
            ok = false;
            return;
        }
        list.resize(size);
        for (T& element : list) (*this)(element);
    }
};

template <class Visitor, class M>
void visit_mount(Visitor& visit, M& m) {
    visit(m.kind), visit(m.source), visit(m.target), visit(m.bytes), visit(m.optional);
}

void Writer::operator()(const PlanMount& mount) {
    visit_mount(*this, mount);
}
void Reader::operator()(PlanMount& mount) {
    visit_mount(*this, mount);
}

template <class Visitor, class P>
void visit_plan(Visitor& visit, P& p) {
    visit(p.bwrap), visit(p.mounts), visit(p.workspace), visit(p.workspace_writable);
    visit(p.argv), visit(p.environment), visit(p.working_directory);
    visit(p.descriptor_targets), visit(p.landlock_writable), visit(p.landlock_readable);
    visit(p.private_tmp);
    visit(p.isolate), visit(p.disable_userns), visit(p.allow_ptrace), visit(p.deny_threads);
    visit(p.wall_ms), visit(p.cpu_ms), visit(p.memory_bytes), visit(p.pids);
    visit(p.file_bytes), visit(p.disk_bytes);
}

}  // namespace

std::string encode_plan(const Plan& plan) {
    Writer writer;
    writer(kMagic);
    visit_plan(writer, plan);
    return std::move(writer.bytes);
}

bool decode_plan(std::string_view bytes, Plan& plan) {
    Reader reader{bytes};
    std::uint64_t magic = 0;
    reader(magic);
    if (!reader.ok || magic != kMagic) return false;
    visit_plan(reader, plan);
    return reader.ok && reader.bytes.empty();
}

}  // namespace skein::sandbox
