#include "sandbox/probe.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <sstream>
#include <system_error>

#include "sandbox/run.h"
#include "sandbox/spawn.h"
#include "sandbox/temporary_directory.h"

namespace skein::sandbox {
namespace {

namespace fs = std::filesystem;

/// Things outside that a sandboxed program must not reach. Gone with the object.
class Canaries {
  public:
    Canaries() {
        std::uint64_t random = 0;
        if (getrandom(&random, sizeof random, 0) < 0) throw Error("sandbox: no random bytes");
        secret = fmt::format("{:016x}", random);
        file = directory_.path() / "secret";
        socket_file = directory_.path() / "socket";
        const Descriptor canary(open(file.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0666));
        // Modes are wide open on purpose: the sandbox must hide them, not the modes.
        fs::permissions(directory_.path(), fs::perms::all);
        fs::permissions(file, static_cast<fs::perms>(0666));
        listen_everywhere();
    }
    std::string secret;
    fs::path file, socket_file;
    int port = 0;
    std::string abstract_name() const { return "skein-probe-" + secret; }

  private:
    static Descriptor listener(int family, const void* address, std::size_t size) {
        Descriptor fd(socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
        bind(fd.get(), static_cast<const sockaddr*>(address), static_cast<socklen_t>(size));
        if (listen(fd.get(), 4) != 0) throw Error("sandbox: cannot listen for the probe");
        return fd;
    }

    void listen_everywhere() {
        sockaddr_in tcp{};
        tcp.sin_family = AF_INET;
        tcp.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        tcp_ = listener(AF_INET, &tcp, sizeof tcp);
        socklen_t size = sizeof tcp;
        getsockname(tcp_.get(), reinterpret_cast<sockaddr*>(&tcp), &size);
        port = ntohs(tcp.sin_port);
        sockaddr_un local{};
        local.sun_family = AF_UNIX;
        abstract_name().copy(local.sun_path + 1, sizeof local.sun_path - 2);
        abstract_ =
            listener(AF_UNIX, &local, offsetof(sockaddr_un, sun_path) + 1 + abstract_name().size());
        sockaddr_un path{};
        path.sun_family = AF_UNIX;
        socket_file.string().copy(path.sun_path, sizeof path.sun_path - 1);
        path_ = listener(AF_UNIX, &path, sizeof path);
        fs::permissions(socket_file, static_cast<fs::perms>(0666));
    }

    TemporaryDirectory directory_;
    Descriptor tcp_, abstract_, path_;
};

std::string remedy_for(std::string_view message) {
    const auto says = [&](std::string_view part) { return message.find(part) != message.npos; };
    if (says("of another build"))
        return "build and install skein as a whole: library and skein-sandbox-runner differ";
    if (says("cannot execute") && says("bwrap"))
        return "install bubblewrap (package 'bubblewrap', version 0.8 or newer)";
    if (says("uid map: Permission denied") || says("RTM_NEWADDR"))
        return "AppArmor restricts user namespaces: install the distribution's profile for "
               "/usr/bin/bwrap (bwrap-userns-restrict)";
    if (says("No permissions to create") || says("max_user_namespaces") || says("Failed to make /"))
        return "this container or kernel forbids user namespaces: raise user.max_user_namespaces, "
               "or start the container with a seccomp profile that allows them";
    if (says("mount proc"))
        return "/proc is masked by the container: start it with --security-opt "
               "systempaths=unconfined";
    return "run `bwrap --unshare-all --ro-bind / / true` by hand and follow its message";
}

std::string remedy_for_layer(const std::string& layer) {
    if (layer == "landlock") return "use a kernel with Landlock enabled (lsm=landlock,...)";
    if (layer == "proc") return remedy_for("mount proc");
    return "report this: the layer was asked for and did not hold";
}

ProcessResult attack(const std::string& runner, const std::string& bwrap, const Canaries& canaries,
                     const Capabilities& capabilities) {
    Command command;
    SandboxPolicy policy;
    const bool isolate = capabilities.level != Level::landlock;
    if (!isolate) policy.mounts.push_back({Mount::Kind::read_only, runner, runner, 0, false});
    command.argv = {isolate ? "/run/skein/init" : runner,
                    "probe",
                    canaries.file,
                    canaries.secret,
                    std::to_string(canaries.port),
                    canaries.abstract_name(),
                    canaries.socket_file};
    ResourceLimits limits;
    limits.wall_time = std::chrono::seconds(10);
    Plan plan = make_plan(policy, command, limits, capabilities, bwrap);
    return complete(run_plan(runner, std::move(plan), std::move(command), limits,
                             capabilities.level, "SKEIN_CANARY=" + canaries.secret));
}

std::vector<ProbeLine> parse_lines(const std::string& text) {
    std::vector<ProbeLine> lines;
    std::istringstream stream(text);
    for (std::string row; std::getline(stream, row);) {
        const std::size_t first = row.find('\t');
        const std::size_t second = row.find('\t', first + 1);
        if (second == std::string::npos) continue;
        ProbeLine line;
        line.layer = row.substr(0, first);
        line.ok = row.substr(first + 1, second - first - 1) == "ok";
        line.detail = row.substr(second + 1);
        if (!line.ok) line.remedy = remedy_for_layer(line.layer);
        lines.push_back(std::move(line));
    }
    return lines;
}

/// With namespaces Landlock only repeats what they do; without them it has to hold.
bool proves(const std::vector<ProbeLine>& lines, Level level) {
    constexpr std::size_t kLayers = 15;
    if (lines.size() != kLayers) return false;
    for (const ProbeLine& line : lines) {
        const bool needed =
            level == Level::landlock
                // All processes and the services of the host stay visible: a weaker level, so
                // named.
                ? line.layer != "pid namespace" && line.layer != "socket files" &&
                      line.layer != "limits"
                : line.layer != "landlock" && (line.layer != "proc" || level == Level::full);
        if (needed && !line.ok) return false;
    }
    return true;
}

ProbeLine start_line(const ProcessResult& result) {
    ProbeLine line{"start", result.ok(), result.detail, {}};
    if (result.ok()) {
        line.detail = fmt::format("one run takes {:.1f} ms inside",
                                  static_cast<double>(result.wall_time.count()) / 1000);
        return line;
    }
    if (line.detail.empty()) line.detail = std::string(to_string(result.outcome));
    line.remedy = remedy_for(line.detail);
    return line;
}

}  // namespace

ProbeResult probe_machine(const std::string& runner, const std::string& bwrap) {
    const Canaries canaries;
    const TemporaryDirectory temporary;
    const Capabilities ladder[] = {{Level::full, true, {}},
                                   {Level::full, false, {}},
                                   {Level::full_noproc, true, {}},
                                   {Level::full_noproc, false, {}},
                                   {Level::landlock, false, temporary.path()}};
    ProbeResult best;
    std::vector<ProbeLine> missed;  // why the strongest level was not reached
    for (const Capabilities& candidate : ladder) {
        const ProcessResult result = attack(runner, bwrap, canaries, candidate);
        std::vector<ProbeLine> lines = parse_lines(result.out.text());
        const bool proven = result.ok() && proves(lines, candidate.level);
        lines.insert(lines.begin(), start_line(result));
        if (!proven) {
            if (missed.empty()) missed = std::move(lines);
            continue;
        }
        // The first attempt knows best what stands in the way of the full level.
        for (const ProbeLine& line : missed)
            if (!line.ok && candidate.level != Level::full) lines.push_back(line);
        best.report.lines = std::move(lines);
        best.report.level = candidate.level;
        best.capabilities = candidate;
        return best;
    }
    best.report.lines = std::move(missed);
    return best;
}

}  // namespace skein::sandbox
