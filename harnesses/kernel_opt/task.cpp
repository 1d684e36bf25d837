#include "harnesses/kernel_opt/task.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <boost/json/error.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <set>
#include <stdexcept>
#include <string_view>

namespace skein::harnesses {

namespace json = boost::json;
namespace fs = std::filesystem;

namespace {

std::string read_text(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    if (!file) throw std::runtime_error(fmt::format("{}: cannot be read", path.string()));
    return text;
}

/// An object of a task file. Knows its file and key path, so that every refusal names both, and
/// which keys were asked for, so that the others can be refused.
class Reader {
  public:
    Reader(const json::value& value, std::string file, std::string path)
        : file_(std::move(file)), path_(std::move(path)) {
        if (!value.is_object()) fail("", "an object", value);
        object_ = &value.get_object();
    }

    std::string text(std::string_view key) {
        const json::value& value = get(key);
        if (!value.is_string() || value.get_string().empty()) {
            fail(key, "a non-empty string", value);
        }
        return std::string(value.get_string());
    }

    double number(std::string_view key) {
        const json::value& value = get(key);
        if (!value.is_number()) fail(key, "a number", value);
        const auto result = value.to_number<double>();
        if (!(result >= 0)) fail(key, "a number that is not negative", value);
        return result;
    }

    int positive_integer(std::string_view key) {
        const json::value& value = get(key);
        json::error_code error;
        const int result = value.is_number() ? value.to_number<int>(error) : 0;
        if (error || result < 1) fail(key, "a positive integer", value);
        return result;
    }

    bool boolean(std::string_view key) {
        const json::value& value = get(key);
        if (!value.is_bool()) fail(key, "true or false", value);
        return value.get_bool();
    }

    const json::array& list(std::string_view key) {
        const json::value& value = get(key);
        if (!value.is_array()) fail(key, "a list", value);
        return value.get_array();
    }

    std::vector<std::string> texts(std::string_view key) {
        std::vector<std::string> result;
        for (const json::value& value : list(key)) {
            if (!value.is_string()) fail(key, "a list of strings", value);
            result.emplace_back(value.get_string());
        }
        return result;
    }

    Reader object(std::string_view key) { return {get(key), file_, key_path(key)}; }

    const json::value& get(std::string_view key) {
        asked_.insert(std::string(key));
        const json::value* value = object_->if_contains(key);
        if (value == nullptr) {
            throw std::runtime_error(fmt::format("{}: {}: missing", file_, key_path(key)));
        }
        return *value;
    }

    /// Call after the last key was read.
    void refuse_other_keys() const {
        for (const auto& member : *object_) {
            const std::string key(member.key());
            if (!asked_.contains(key)) {
                throw std::runtime_error(fmt::format("{}: {}: unknown key; known here: {}", file_,
                                                     key_path(key), fmt::join(asked_, ", ")));
            }
        }
    }

    [[noreturn]] void fail(std::string_view key, std::string_view expected,
                           const json::value& got) const {
        std::string shown = json::serialize(got);
        if (shown.size() > 80) shown = shown.substr(0, 80) + "...";
        throw std::runtime_error(
            fmt::format("{}: {}: expected {}, got {}", file_, key_path(key), expected, shown));
    }

    std::string key_path(std::string_view key) const {
        if (path_.empty()) return key.empty() ? "top level" : std::string(key);
        return key.empty() ? path_ : fmt::format("{}.{}", path_, key);
    }

  private:
    std::string file_, path_;
    const json::object* object_ = nullptr;
    std::set<std::string> asked_;
};

json::value parse_file(const fs::path& path) {
    const std::string text = read_text(path);
    json::error_code error;
    json::value value = json::parse(text, error);
    if (error) {
        throw std::runtime_error(fmt::format("{}: not JSON: {}", path.string(), error.message()));
    }
    return value;
}

std::string sha256_hex(std::string_view text) {
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
    unsigned int digest_bytes = 0;
    if (EVP_Digest(text.data(), text.size(), digest.data(), &digest_bytes, EVP_sha256(), nullptr) !=
        1) {
        throw std::runtime_error("SHA-256 is not available in this OpenSSL");
    }
    return fmt::format("{:02x}", fmt::join(digest.begin(), digest.begin() + digest_bytes, ""));
}

KernelCase read_case(const json::value& value, const std::string& file, std::size_t index,
                     const std::vector<std::string>& axes) {
    Reader reader(value, file, fmt::format("cases[{}]", index));
    KernelCase result;
    result.name = reader.text("name");
    result.distribution = reader.text("distribution");
    result.timed = reader.boolean("timed");
    Reader sizes = reader.object("sizes");
    for (const std::string& axis : axes) {
        const json::value& size = sizes.get(axis);
        if (!size.is_int64() || size.get_int64() < 0) {
            sizes.fail(axis, "an integer that is not negative", size);
        }
        result.sizes[axis] = size.get_int64();
    }
    sizes.refuse_other_keys();
    reader.refuse_other_keys();
    return result;
}

std::vector<KernelCase> read_cases(const fs::path& path, const std::vector<std::string>& axes) {
    const json::value value = parse_file(path);
    Reader reader(value, path.string(), "");
    std::vector<KernelCase> cases;
    for (const json::value& entry : reader.list("cases")) {
        cases.push_back(read_case(entry, path.string(), cases.size(), axes));
    }
    reader.refuse_other_keys();
    if (cases.empty()) throw std::runtime_error(path.string() + ": cases: expected at least one");
    return cases;
}

Tolerance read_tolerance(Reader reader) {
    Tolerance tolerance;
    tolerance.exact = reader.boolean("exact");
    if (!tolerance.exact) {
        tolerance.c = reader.number("c");
        tolerance.noise_factor = reader.number("noise_factor");
        tolerance.k = reader.text("k");
        tolerance.row = reader.text("row");
    }
    reader.refuse_other_keys();
    return tolerance;
}

void read_identity(Reader& reader, KernelTask& task) {
    task.id = reader.text("id");
    task.title = reader.text("title");
    task.version = reader.positive_integer("version");
    task.tags = reader.texts("tags");
    task.regime = reader.text("regime");
    task.control = reader.boolean("control");
    task.licence = reader.text("licence");
    task.canary = reader.text("canary");
    const std::string directory_name = task.directory.filename().string();
    if (task.id != directory_name) {
        reader.fail("id", fmt::format("the directory's name '{}'", directory_name),
                    reader.get("id"));
    }
}

void read_interface(Reader& reader, KernelTask& task) {
    try {
        task.signature = tools::parse_signature(reader.get("signature"));
    } catch (const std::runtime_error& error) {
        throw std::runtime_error(
            fmt::format("{}: {}", (task.directory / "task.json").string(), error.what()));
    }
    task.axes = reader.texts("axes");
    std::set<std::string> sizes;
    for (const tools::KernelArgument& argument : task.signature.arguments) {
        if (argument.role == tools::KernelArgument::Role::size) sizes.insert(argument.name);
    }
    if (task.axes.size() != sizes.size() ||
        std::set<std::string>(task.axes.begin(), task.axes.end()) != sizes) {
        reader.fail("axes", "every size argument of the signature once", reader.get("axes"));
    }
    task.flops = reader.text("flops");
    task.bytes = reader.text("bytes");
    task.tolerance = read_tolerance(reader.object("tolerance"));
}

void read_rules(Reader& reader, KernelTask& task) {
    Reader build = reader.object("build");
    task.language_standard = build.text("standard");
    task.flags = build.texts("flags");
    task.allowed_flags = build.texts("allowed_flags");
    build.refuse_other_keys();
    task.forbidden_symbols = reader.texts("forbidden_symbols");
    task.anchor_sha256 = reader.text("anchor_sha256");
    Reader known = reader.object("known");
    task.known.best_speedup = known.number("best_speedup");
    task.known.flags_only_speedup = known.number("flags_only_speedup");
    task.known.machine = known.text("machine");
    task.known.date = known.text("date");
    known.refuse_other_keys();
}

/// Case names are unique over both files, one shape is timed, and every expression is defined.
void check_cases(const KernelTask& task) {
    std::set<std::string> names;
    bool timed = false;
    for (const auto* cases : {&task.visible, &task.hidden}) {
        for (const KernelCase& entry : *cases) {
            const std::string where =
                fmt::format("{}: case '{}'", task.directory.string(), entry.name);
            if (!names.insert(entry.name).second) {
                throw std::runtime_error(where + ": the name is used twice");
            }
            timed = timed || entry.timed;
            try {
                for (const std::string& expression :
                     {task.flops, task.bytes, task.tolerance.k, task.tolerance.row}) {
                    tools::evaluate_expression(expression, entry.sizes);
                }
                for (const tools::KernelArgument& argument : task.signature.arguments) {
                    if (argument.role == tools::KernelArgument::Role::size) continue;
                    if (tools::evaluate_expression(argument.count, entry.sizes) < 0) {
                        throw std::runtime_error(argument.name + ".count is negative");
                    }
                }
            } catch (const std::runtime_error& error) {
                throw std::runtime_error(fmt::format("{}: {}", where, error.what()));
            }
        }
    }
    if (!timed) {
        throw std::runtime_error(task.directory.string() + ": no case is timed");
    }
}

}  // namespace

KernelTask load_task(const fs::path& directory) {
    KernelTask task;
    task.directory = fs::absolute(directory).lexically_normal();
    if (!task.directory.has_filename()) task.directory = task.directory.parent_path();
    const fs::path file = task.directory / "task.json";
    const json::value value = parse_file(file);
    Reader reader(value, file.string(), "");
    read_identity(reader, task);
    read_interface(reader, task);
    read_rules(reader, task);
    reader.refuse_other_keys();

    task.visible = read_cases(task.directory / "visible.json", task.axes);
    task.hidden = read_cases(task.directory / "hidden" / "hidden.json", task.axes);
    check_cases(task);
    for (const char* required : {"abi.h", "reference.cc", "gen.cc", "start/kernel.cc"}) {
        if (!fs::is_regular_file(task.directory / required)) {
            throw std::runtime_error(
                fmt::format("{}: missing from the task", (task.directory / required).string()));
        }
    }
    task.prompt = read_text(task.directory / "prompt.md");
    task.anchor_source = read_text(task.directory / "anchor.cc");
    const std::string hash = sha256_hex(task.anchor_source);
    if (hash != task.anchor_sha256) {
        throw std::runtime_error(
            fmt::format("{}: the frozen anchor changed: SHA-256 expected {}, got {}; restore it, "
                        "or publish the change as a new version of the task",
                        (task.directory / "anchor.cc").string(), task.anchor_sha256, hash));
    }
    return task;
}

std::vector<KernelTask> load_tasks(const fs::path& root) {
    if (!fs::is_directory(root)) {
        throw std::runtime_error(fmt::format("{}: not a directory of tasks", root.string()));
    }
    std::vector<KernelTask> tasks;
    for (const fs::directory_entry& entry : fs::directory_iterator(root)) {
        if (fs::exists(entry.path() / "task.json")) tasks.push_back(load_task(entry.path()));
    }
    if (tasks.empty()) throw std::runtime_error(fmt::format("{}: holds no task", root.string()));
    std::sort(tasks.begin(), tasks.end(),
              [](const KernelTask& a, const KernelTask& b) { return a.id < b.id; });
    return tasks;
}

fs::path tasks_root() {
    std::error_code error;
    const fs::path program = fs::read_symlink("/proc/self/exe", error);
    const fs::path installed = program.parent_path().parent_path() / "share" / "skein" / "tasks";
    if (!error && fs::is_directory(installed)) return installed;
    const fs::path source = SKEIN_TASKS_SOURCE_DIR;
    if (fs::is_directory(source)) return source;
    throw std::runtime_error(fmt::format("kernel tasks not found: neither {} nor {} exists",
                                         installed.string(), source.string()));
}

}  // namespace skein::harnesses
