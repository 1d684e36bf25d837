#include "tools/profiler/kernel_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/value_to.hpp>

#include "tools/function_tool.h"
#include "tools/profiler/kernel_host.h"
#include "tools/profiler/profile_run.h"

namespace skein::tools {
namespace {

namespace json = boost::json;
namespace asio = boost::asio;

constexpr std::uint64_t kMaxSourceBytes = 4 << 20;

constexpr const char* kSchema = R"({
  "type": "object",
  "properties": {
    "source": {"type": "string", "description": "C++ file in the workspace that defines the entry"},
    "entry": {"type": "string", "description": "name of the extern \"C\" function"},
    "arguments": {
      "type": "array", "minItems": 1, "maxItems": 32,
      "description": "in the order of the C parameters; sizes are passed as int64_t",
      "items": {
        "type": "object",
        "properties": {
          "name": {"type": "string"},
          "role": {"type": "string", "enum": ["input", "output", "inout", "size"]},
          "type": {"type": "string", "enum": ["f32", "f64", "i8", "u8", "i32", "u32", "i64"]},
          "count": {"type": "string", "description": "elements, over the sizes, e.g. m * n"}
        },
        "required": ["name", "role"], "additionalProperties": false
      }
    },
    "sizes": {"type": "object", "description": "a value for each size argument, e.g. {\"m\": 512}"},
    "flags": {"type": "array", "items": {"type": "string"}, "maxItems": 32,
              "description": "compiler flags; default -O3 -march=native"},
    "baseline": {"type": "string", "description": "file with the same entry to compare with"},
    "flops": {"type": "string", "description": "operations of one call, e.g. 2 * m * n"},
    "bytes": {"type": "string", "description": "bytes one call must move; default: all buffers"}
  },
  "required": ["source", "entry", "arguments", "sizes"],
  "additionalProperties": false
})";

/// Flags select code generation; what names files, programs or libraries is refused.
bool is_code_generation(std::string_view flag) {
    constexpr std::array<std::string_view, 4> kPrefixes{"-O", "-f", "-m", "-D"};
    constexpr std::array<std::string_view, 6> kRefused{"-fplugin", "-fdump",     "-fprofile",
                                                       "-fuse-ld", "-fsanitize", "-flto"};
    const auto starts = [&](std::string_view prefix) { return flag.starts_with(prefix); };
    return std::any_of(kPrefixes.begin(), kPrefixes.end(), starts) &&
           std::none_of(kRefused.begin(), kRefused.end(), starts);
}

ProfileRequest read_request(const json::object& arguments, const Workspace& workspace) {
    ProfileRequest request;
    request.signature = parse_signature(
        json::object{{"entry", arguments.at("entry")}, {"arguments", arguments.at("arguments")}});
    for (const auto& [name, value] : arguments.at("sizes").as_object()) {
        if (!value.is_int64() || value.get_int64() < 0) {
            throw ProfileFailure(
                fmt::format("size `{}` is not a non-negative integer", std::string_view(name)));
        }
        request.sizes[std::string(name)] = value.get_int64();
    }
    for (const KernelArgument& argument : request.signature.arguments) {
        if (argument.role == KernelArgument::Role::size && !request.sizes.contains(argument.name)) {
            throw ProfileFailure(fmt::format("`sizes` has no value for `{}`", argument.name));
        }
    }
    request.flags = {"-O3", "-march=native"};
    if (const auto* flags = arguments.if_contains("flags")) {
        request.flags = json::value_to<std::vector<std::string>>(*flags);
    }
    for (const std::string& flag : request.flags) {
        if (!is_code_generation(flag)) {
            throw ProfileFailure(
                fmt::format("the flag {} is not accepted: only -O, -f, -m and -D "
                            "flags that change code generation are",
                            flag));
        }
    }
    request.source_name = string_or(arguments, "source", "");
    request.source = workspace.read(request.source_name, kMaxSourceBytes);
    request.baseline_name = string_or(arguments, "baseline", "");
    if (!request.baseline_name.empty()) {
        request.baseline = workspace.read(request.baseline_name, kMaxSourceBytes);
    }
    request.flops = string_or(arguments, "flops", "");
    request.bytes = string_or(arguments, "bytes", "");
    return request;
}

class KernelProfileTool : public Tool {
  public:
    KernelProfileTool(sandbox::Sandbox& sandbox, const Workspace& workspace,
                      KernelProfileOptions options)
        : workspace_(workspace),
          options_(std::move(options)),
          thread_(sandbox),
          builder_(sandbox, options_.scratch) {
        spec_.name = "kernel_profile";
        spec_.description =
            "Build, run, time and explain a C++ kernel with a C entry. Compares with a baseline in "
            "interleaved pairs, shows how far the machine's limit is, what the hot loop consists "
            "of "
            "and what to try next.";
        spec_.parameters = json::parse(kSchema).as_object();
        spec_.effect = Effect::reads;
    }

    const ToolSpec& spec() const override { return spec_; }

    asio::awaitable<ToolResult> call(json::object arguments) override {
        // Timing spins; the caller's executor must stay free meanwhile.
        auto work = profile(std::move(arguments));
        co_return co_await asio::co_spawn(pool_, std::move(work), asio::use_awaitable);
    }

  private:
    asio::awaitable<ToolResult> profile(json::object arguments) {
        ToolResult result;
        try {
            const ProfileRequest request = read_request(arguments, workspace_);
            const Profile now = run_profile(request, options_, thread_, builder_);
            const auto before = previous_.find(request.signature.entry);
            result.text =
                render_profile(request, now, before == previous_.end() ? nullptr : &before->second);
            result.details = {
                {"median_ns", now.median_ns}, {"limit_ns", now.limit.ns}, {"verdict", now.verdict}};
            if (now.speed) result.details["speedup"] = now.speed->speedup;
            previous_[request.signature.entry] = now;
        } catch (const HostFailure& error) {
            result.status = ToolStatus::harness_error;
            result.text = error.what();
        } catch (const std::runtime_error& error) {
            result.status = ToolStatus::failed;
            result.text = error.what();
        }
        co_return result;
    }

    const Workspace& workspace_;
    KernelProfileOptions options_;
    SandboxThread thread_;
    KernelBuilder builder_;
    ToolSpec spec_;
    std::map<std::string, Profile> previous_;  // by entry; only touched on the pool's one thread
    asio::thread_pool pool_{1};
};

}  // namespace

std::unique_ptr<Tool> make_kernel_profile_tool(sandbox::Sandbox& sandbox,
                                               const Workspace& workspace,
                                               KernelProfileOptions options) {
    return std::make_unique<KernelProfileTool>(sandbox, workspace, std::move(options));
}

}  // namespace skein::tools
