#include "sandbox/policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <system_error>

namespace skein::sandbox {
namespace {

namespace fs = std::filesystem;

// The parts of /etc that programs need and that say nothing about this machine's users. Copied:
// every mount costs about a millisecond a run, and there is no network to need certificates for.
constexpr const char* kEtc[] = {"ld.so.cache", "ld.so.conf", "localtime", "timezone",
                                "ssl/openssl.cnf"};
constexpr std::uintmax_t kLargestCopy = 1 << 20;
constexpr const char* kMergedDirectories[] = {"bin", "sbin", "lib", "lib32", "lib64", "libx32"};

[[noreturn]] void refuse(const std::string& what) {
    throw Error("sandbox policy: " + what);
}

PlanMount step(PlanMount::Kind kind, std::string source, std::string target) {
    PlanMount mount;
    mount.kind = kind;
    mount.source = std::move(source);
    mount.target = std::move(target);
    return mount;
}

PlanMount tmpfs(std::string target, std::uint64_t bytes) {
    PlanMount mount = step(PlanMount::tmpfs, {}, std::move(target));
    mount.bytes = std::max<std::uint64_t>(bytes, 4096);
    return mount;
}

void add_copy(std::vector<PlanMount>& mounts, const fs::path& path) {
    std::error_code error;
    if (!fs::is_regular_file(path, error) || fs::file_size(path, error) > kLargestCopy) return;
    std::string content(fs::file_size(path, error), '\0');
    std::ifstream file(path, std::ios::binary);
    if (file.read(content.data(), static_cast<std::streamsize>(content.size())))
        mounts.push_back(step(PlanMount::file, std::move(content), path));
}

void add_base_system(std::vector<PlanMount>& mounts) {
    std::error_code error;
    mounts.push_back(step(PlanMount::read_only, "/usr", "/usr"));
    for (const std::string name : kMergedDirectories) {
        const fs::path path = "/" + name;
        if (fs::is_symlink(path, error))
            mounts.push_back(step(PlanMount::symlink, fs::read_symlink(path).string(), path));
        else if (fs::is_directory(path, error))
            mounts.push_back(step(PlanMount::read_only, path, path));
    }
    if (fs::is_directory("/etc/alternatives", error))
        mounts.push_back(step(PlanMount::read_only, "/etc/alternatives", "/etc/alternatives"));
    for (const std::string name : kEtc) add_copy(mounts, "/etc/" + name);
    for (const fs::directory_entry& entry : fs::directory_iterator("/etc/ld.so.conf.d", error))
        add_copy(mounts, entry.path());
    const auto file = [&](const char* content, const char* target) {
        mounts.push_back(step(PlanMount::file, content, target));
    };
    file(
        "root:x:0:0:root:/:/usr/sbin/nologin\nsandbox:x:1000:1000::/tmp:/bin/bash\n"
        "nobody:x:65534:65534::/:/usr/sbin/nologin\n",
        "/etc/passwd");
    file("root:x:0:\nsandbox:x:1000:\nnogroup:x:65534:\n", "/etc/group");
    file("127.0.0.1 localhost sandbox\n", "/etc/hosts");
    file("passwd: files\ngroup: files\nhosts: files\n", "/etc/nsswitch.conf");
}

void add_kernel_file_systems(std::vector<PlanMount>& mounts, std::uint64_t tmp_bytes, bool proc) {
    if (proc) {
        mounts.push_back(step(PlanMount::proc, {}, "/proc"));
        mounts.push_back(step(PlanMount::seal, {}, "/proc"));
    } else {
        mounts.push_back(tmpfs("/proc", 4096));
        mounts.push_back(step(PlanMount::seal, {}, "/proc"));
    }
    mounts.push_back(step(PlanMount::dev, {}, "/dev"));
    mounts.push_back(tmpfs("/dev/shm", tmp_bytes));
    mounts.push_back(tmpfs("/tmp", tmp_bytes));
}

fs::path absolute_target(const fs::path& path, const char* field) {
    if (!path.is_absolute() || path.lexically_normal() == "/")
        refuse(fmt::format("{} '{}' must be an absolute path other than /", field, path.string()));
    return path.lexically_normal();
}

bool is_below(const fs::path& path, const fs::path& directory) {
    const auto [end, ignored] =
        std::mismatch(directory.begin(), directory.end(), path.begin(), path.end());
    return end == directory.end();
}

std::string add_workspace(const SandboxPolicy& policy, Plan& plan) {
    if (policy.workspace.empty()) return {};
    std::error_code error;
    const fs::path source = fs::canonical(policy.workspace, error);
    if (error || !fs::is_directory(source))
        refuse(fmt::format("workspace '{}' is not a directory: {}", policy.workspace.string(),
                           error.message()));
    if (source == "/") refuse("the workspace cannot be the root of the machine");
    const fs::path target = absolute_target(
        policy.workspace_target.empty() ? source : policy.workspace_target, "workspace_target");
    plan.workspace = source;
    plan.workspace_writable = policy.workspace_read_only ? 0 : 1;
    const auto kind = policy.workspace_read_only ? PlanMount::read_only : PlanMount::writable;
    plan.mounts.push_back(step(kind, source, target));
    return target;
}

void add_policy_mounts(const SandboxPolicy& policy, const std::string& workspace, Plan& plan,
                       bool inside_workspace) {
    for (const Mount& mount : policy.mounts) {
        const fs::path target = absolute_target(mount.target, "mount target");
        const bool inside = !workspace.empty() && is_below(target, workspace);
        if (inside != inside_workspace) continue;
        if (inside) {
            // bwrap would create a missing target in the user's own directory and leave it there.
            const fs::path on_host = policy.workspace / target.lexically_relative(workspace);
            if (!fs::exists(on_host))
                refuse(
                    fmt::format("mount target '{}' lies in the workspace and does not exist "
                                "there; create it first",
                                target.string()));
        }
        if (mount.kind == Mount::Kind::tmpfs) {
            plan.mounts.push_back(tmpfs(target, mount.tmpfs_bytes));
            plan.landlock_writable.push_back(target);
            continue;
        }
        std::error_code error;
        const fs::path source = fs::canonical(mount.source, error);
        if (error && mount.optional) continue;
        if (error)
            refuse(fmt::format("mount source '{}': {}", mount.source.string(), error.message()));
        const bool writable = mount.kind == Mount::Kind::writable;
        const auto kind = mount.kind == Mount::Kind::device ? PlanMount::device
                          : writable                        ? PlanMount::writable
                                                            : PlanMount::read_only;
        plan.mounts.push_back(step(kind, source, target));
        if (writable) plan.landlock_writable.push_back(target);
    }
}

/// Without namespaces every path is the host's own, so only policies that move nothing can hold.
void fence_without_namespaces(const SandboxPolicy& policy, const std::string& private_tmp,
                              Plan& plan) {
    plan.isolate = 0;
    plan.private_tmp = private_tmp;
    plan.mounts.clear();
    plan.landlock_writable = {private_tmp};
    plan.landlock_readable = {"/usr",        "/proc",      "/etc/alternatives", "/etc/ld.so.conf.d",
                              "/etc/passwd", "/etc/group", "/etc/nsswitch.conf"};
    for (const std::string name : kMergedDirectories) plan.landlock_readable.push_back("/" + name);
    for (const std::string name : kEtc) plan.landlock_readable.push_back("/etc/" + name);
    if (!policy.workspace.empty()) {
        if (!policy.workspace_target.empty() && policy.workspace_target != plan.workspace)
            refuse("workspace_target needs level full; level landlock cannot move paths");
        (policy.workspace_read_only ? plan.landlock_readable : plan.landlock_writable)
            .push_back(plan.workspace);
    }
    for (const Mount& mount : policy.mounts) {
        std::error_code error;
        const fs::path source = fs::canonical(mount.source, error);
        if (error && mount.optional) continue;
        if (error || source != mount.target)
            refuse(fmt::format("mount '{}' needs level full; level landlock cannot move paths",
                               mount.target.string()));
        (mount.kind == Mount::Kind::read_only ? plan.landlock_readable : plan.landlock_writable)
            .push_back(source);
    }
}

std::vector<std::string> environment_of(const SandboxPolicy& policy, const Command& command,
                                        const std::string& temporary) {
    std::map<std::string, std::string> all{
        {"PATH", "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"},
        {"HOME", temporary},
        {"TMPDIR", temporary},
        {"USER", "sandbox"},
        {"LOGNAME", "sandbox"},
        {"SHELL", "/bin/bash"},
        {"LANG", "C.UTF-8"},
        {"LC_ALL", "C.UTF-8"},
        {"TERM", "dumb"},
        // Nobody answers: prompts, editors and pagers must fail or pass through at once.
        {"GIT_TERMINAL_PROMPT", "0"},
        {"GIT_EDITOR", "false"},
        {"GIT_SEQUENCE_EDITOR", "false"},
        {"EDITOR", "false"},
        {"VISUAL", "false"},
        {"PAGER", "cat"},
        {"GIT_PAGER", "cat"},
        {"MANPAGER", "cat"},
        {"DEBIAN_FRONTEND", "noninteractive"}};
    for (const auto& [name, value] : policy.environment) all[name] = value;
    for (const auto& [name, value] : command.environment) all[name] = value;
    std::vector<std::string> list;
    for (const auto& [name, value] : all) {
        if (name.empty() || name.find_first_of(std::string_view("=\0", 2)) != std::string::npos ||
            value.find('\0') != std::string::npos)
            refuse(fmt::format("environment name '{}' or its value cannot be expressed", name));
        list.push_back(name + "=" + value);
    }
    return list;
}

std::vector<std::uint64_t> targets_of(const Command& command) {
    std::vector<std::uint64_t> targets;
    for (const PassedDescriptor& passed : command.descriptors) {
        const auto target = static_cast<std::uint64_t>(passed.target);
        if (passed.fd < 0 || passed.target < 3 || passed.target >= kPrivateFd)
            refuse(fmt::format("descriptor {} as {}: the number inside must be in 3..{}", passed.fd,
                               passed.target, kPrivateFd - 1));
        if (std::find(targets.begin(), targets.end(), target) != targets.end())
            refuse(fmt::format("descriptor number {} is given twice", passed.target));
        targets.push_back(target);
    }
    return targets;
}

std::uint64_t milliseconds(std::chrono::milliseconds time, const char* field, bool zero_allowed) {
    if (time.count() < (zero_allowed ? 0 : 1))
        refuse(fmt::format("{} is {} ms", field, time.count()));
    return static_cast<std::uint64_t>(time.count());
}

}  // namespace

Plan make_plan(const SandboxPolicy& policy, const Command& command, const ResourceLimits& limits,
               const Capabilities& capabilities, const std::string& bwrap) {
    Plan plan;
    plan.bwrap = bwrap;
    if (command.argv.empty() || command.argv[0].empty()) refuse("the command is empty");
    for (const std::string& argument : command.argv)
        if (argument.find('\0') != std::string::npos) refuse("an argument holds a NUL byte");
    plan.argv = command.argv;
    const bool isolate = capabilities.level != Level::landlock;
    const std::string temporary = isolate ? "/tmp" : capabilities.private_tmp;
    plan.environment = environment_of(policy, command, temporary);
    plan.descriptor_targets = targets_of(command);

    add_base_system(plan.mounts);
    add_kernel_file_systems(plan.mounts, policy.tmp_bytes, capabilities.level == Level::full);
    // What surrounds the workspace first, what lies in it last.
    std::string workspace;
    if (!policy.workspace.empty())
        workspace = policy.workspace_target.empty()
                        ? fs::weakly_canonical(policy.workspace).string()
                        : policy.workspace_target.lexically_normal().string();
    add_policy_mounts(policy, workspace, plan, false);
    add_workspace(policy, plan);
    add_policy_mounts(policy, workspace, plan, true);
    plan.mounts.push_back(step(PlanMount::seal, {}, "/dev"));
    plan.mounts.push_back(step(PlanMount::seal, {}, "/"));

    for (const char* path : {"/tmp", "/dev/shm"}) plan.landlock_writable.emplace_back(path);
    if (plan.workspace_writable != 0) plan.landlock_writable.push_back(workspace);
    plan.working_directory = !command.working_directory.empty() ? command.working_directory.string()
                             : !workspace.empty()               ? workspace
                                                                : temporary;
    if (!isolate) fence_without_namespaces(policy, temporary, plan);
    plan.disable_userns = capabilities.disable_userns ? 1 : 0;
    plan.allow_ptrace = policy.allow_ptrace ? 1 : 0;
    plan.deny_threads = policy.deny_threads ? 1 : 0;
    plan.wall_ms = milliseconds(limits.wall_time, "wall_time", false);
    plan.cpu_ms = milliseconds(limits.cpu_time, "cpu_time", true);
    plan.memory_bytes = limits.memory_bytes;
    if (limits.pids < 1) refuse(fmt::format("pids is {}", limits.pids));
    plan.pids = static_cast<std::uint64_t>(limits.pids) + 1;  // init counts, too
    plan.file_bytes = limits.file_bytes;
    plan.disk_bytes = limits.disk_bytes;
    return plan;
}

}  // namespace skein::sandbox
