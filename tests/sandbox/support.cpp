#include "tests/sandbox/support.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <sstream>

namespace skein::sandbox::test {
namespace {

namespace fs = std::filesystem;

std::string mark() {
    return "SKEIN_TEST_MARK=" + std::to_string(getpid());
}

/// Session of a process: field 6 of stat; supervisors lead a session of their own.
int session_of(const fs::path& process) {
    const std::string text = read_file(process / "stat");
    const std::size_t bracket = text.rfind(')');
    if (bracket == std::string::npos) return -1;
    std::istringstream fields(text.substr(bracket + 2));
    std::string state;
    int parent = -1, group = -1, session = -1;
    fields >> state >> parent >> group >> session;
    return state == "Z" ? -1 : session;
}

}  // namespace

std::string read_file(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
}

void write_file(const fs::path& path, const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
}

Sandbox& full_sandbox() {
    static const std::unique_ptr<Sandbox> sandbox = make_linux_sandbox();
    std::string report;
    for (const ProbeLine& line : sandbox->probe().lines)
        if (!line.ok) report += line.layer + ": " + line.detail + "; " + line.remedy + "\n";
    INFO("layers that do not hold:\n", report);
    REQUIRE(sandbox->probe().level == Level::full);
    return *sandbox;
}

fs::path attack_directory() {
    return fs::path(SKEIN_BUILD_DIR) / "tests/sandbox/attack";
}

Gate::Gate() {
    REQUIRE(pipe2(ends_, O_CLOEXEC) == 0);
}

Gate::~Gate() {
    close(ends_[0]);
    close(ends_[1]);
}

void Gate::open() const {
    CHECK(write(ends_[1], "\n", 1) == 1);
}

SandboxPolicy policy() {
    SandboxPolicy rules;
    rules.mounts.push_back({Mount::Kind::read_only, attack_directory(), "/attack", 0, false});
    rules.environment["SKEIN_TEST_MARK"] = std::to_string(getpid());
    return rules;
}

SandboxPolicy policy(const fs::path& workspace) {
    SandboxPolicy rules = policy();
    rules.workspace = workspace;
    return rules;
}

ResourceLimits limits(std::chrono::milliseconds wall) {
    ResourceLimits bounds;
    bounds.wall_time = wall;
    return bounds;
}

Command bash(const std::string& script) {
    Command command;
    command.argv = {"bash", "-c", script};
    return command;
}

Command attack(std::vector<std::string> arguments) {
    Command command;
    command.argv = {"/attack/skein-attack"};
    command.argv.insert(command.argv.end(), arguments.begin(), arguments.end());
    return command;
}

ProcessResult run(const Command& command, const SandboxPolicy& rules,
                  const ResourceLimits& bounds) {
    ProcessResult result = run_blocking(full_sandbox(), rules, command, bounds);
    INFO("detail: ", result.detail, " err: ", result.err.text());
    CHECK(result.outcome != Outcome::setup_failed);
    return result;
}

std::vector<int> survivors(const std::vector<int>& supervisors) {
    std::vector<int> found;
    for (const fs::directory_entry& entry : fs::directory_iterator("/proc")) {
        const std::string name = entry.path().filename();
        if (name.find_first_not_of("0123456789") != std::string::npos) continue;
        const int session = session_of(entry.path());
        const bool marked = read_file(entry.path() / "environ").find(mark()) != std::string::npos;
        const bool led = std::count(supervisors.begin(), supervisors.end(), session) > 0;
        if (session > 0 && (marked || led)) found.push_back(std::stoi(name));
    }
    return found;
}

std::vector<int> survivors_after(std::chrono::milliseconds patience,
                                 const std::vector<int>& supervisors) {
    const auto end = std::chrono::steady_clock::now() + patience;
    std::vector<int> left = survivors(supervisors);
    while (!left.empty() && std::chrono::steady_clock::now() < end) left = survivors(supervisors);
    return left;
}

std::vector<int> children() {
    std::vector<int> list;
    for (const fs::directory_entry& task : fs::directory_iterator("/proc/self/task")) {
        std::istringstream text(read_file(task.path() / "children"));
        for (int pid = 0; text >> pid;) list.push_back(pid);
    }
    return list;
}

TemporaryDirectory::TemporaryDirectory() {
    std::string pattern = (fs::temp_directory_path() / "skein-sandbox-test-XXXXXX").string();
    REQUIRE(mkdtemp(pattern.data()) != nullptr);
    path_ = pattern;
    fs::permissions(path_, static_cast<fs::perms>(0755));
}

TemporaryDirectory::~TemporaryDirectory() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
}

std::string verdict(const ProcessResult& result, const std::string& name) {
    std::istringstream lines(result.out.text());
    for (std::string line; std::getline(lines, line);)
        if (line.rfind(name + " ", 0) == 0 && line.find(' ', name.size() + 1) == std::string::npos)
            return line.substr(name.size() + 1);
    return {};
}

}  // namespace skein::sandbox::test
