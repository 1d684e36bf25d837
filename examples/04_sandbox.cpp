// A command under a policy, and a refusal: it may write its workspace, and nothing else is there.

#include <filesystem>
#include <iostream>

#include "sandbox/sandbox.h"

int main() {
    using namespace skein::sandbox;
    namespace fs = std::filesystem;
    std::string workspace = (fs::temp_directory_path() / "skein-example-XXXXXX").string();
    if (mkdtemp(workspace.data()) == nullptr) return 1;
    try {
        const auto sandbox = make_linux_sandbox();
        SandboxPolicy policy;
        policy.workspace = workspace;
        ResourceLimits limits;
        limits.wall_time = std::chrono::seconds(5);
        for (const char* script : {"echo hello > note && cat note", "ls /home /root",
                                   "exec 3<>/dev/tcp/127.0.0.1/80", "while :; do :; done"}) {
            Command command;
            command.argv = {"bash", "-c", script};
            command.working_directory = workspace;
            if (std::string_view(script).starts_with("while")) {
                limits.wall_time = std::chrono::milliseconds(300);
            }
            const ProcessResult result = run_blocking(*sandbox, policy, command, limits);
            std::cout << "$ " << script << "\n  " << to_string(result.outcome) << " "
                      << result.exit_code << ": " << result.out.text() << result.err.text() << "\n";
        }
    } catch (const Error& error) {
        std::cerr << error.what() << "\n";
        return 1;
    }
    fs::remove_all(workspace);
}
