// Builds kernels in the sandbox and calls them in theirs.
#include "tools/profiler/kernel_host.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>

#include "tests/support/temporary_directory.h"
#include "tools/profiler/kernel_build.h"
#include "tools/profiler/program_path.h"

using namespace skein;
using namespace skein::tools;

namespace {

struct Lab {
    Lab()
        : sandbox(sandbox::make_linux_sandbox()),
          thread(*sandbox),
          builder(*sandbox, directory.path() / "builds") {}

    BuildResult build(const std::string& body, std::vector<std::string> flags = {"-O2"}) {
        KernelSignature signature;
        signature.entry = "kernel";
        signature.arguments = {{"x", KernelArgument::Role::input, ElementType::f32, "n"},
                               {"y", KernelArgument::Role::output, ElementType::f32, "n"},
                               {"n", KernelArgument::Role::size, ElementType::i64, ""}};
        BuildRequest request;
        request.files = {
            {"kernel.cc",
             "extern \"C\" void kernel(const float* x, float* y, long n) {" + body + "}\n"},
            make_entry_shim(signature)};
        request.flags = std::move(flags);
        return builder.build(request);
    }

    std::unique_ptr<KernelHost> host(const BuildResult& built, bool deny_threads = true) {
        KernelHostOptions options;
        options.program = helper_program("skein-kernel-host");
        options.library = built.library;
        options.buffers = {{4096, false}, {4096, true}};
        options.deny_threads = deny_threads;
        return std::make_unique<KernelHost>(thread, options);
    }

    test::TemporaryDirectory directory;
    std::unique_ptr<sandbox::Sandbox> sandbox;
    SandboxThread thread;
    KernelBuilder builder;
};

HostCall call_of(std::int64_t n, std::chrono::milliseconds timeout = std::chrono::seconds(10)) {
    HostCall call;
    call.offsets = {0, 0};
    call.bytes = {static_cast<std::uint64_t>(n) * 4, static_cast<std::uint64_t>(n) * 4};
    call.sizes = {n};
    call.timeout = timeout;
    return call;
}

HostFailure::Kind failure_of(KernelHost& host, const HostCall& call) {
    try {
        host.call(call);
        host.audit();
    } catch (const HostFailure& failure) {
        return failure.kind;
    }
    FAIL("the call did not fail");
    return HostFailure::Kind::infrastructure;
}

constexpr const char* kDouble = "for (long i = 0; i < n; ++i) y[i] = 2 * x[i];";

}  // namespace

TEST_SUITE("tools/profiler/kernel_host") {
    TEST_CASE("kernel_host: calls a kernel again and again with what the parent wrote") {
        Lab lab;
        const BuildResult built = lab.build(kDouble);
        REQUIRE_MESSAGE(built.ok, built.diagnostics);
        auto host = lab.host(built);
        for (int round = 1; round <= 3; ++round) {
            const float in = static_cast<float>(round);
            std::memcpy(host->buffer(0).data(), &in, sizeof in);
            CHECK(host->call(call_of(1)) > 0);
            float out = 0;
            std::memcpy(&out, host->buffer(1).data(), sizeof out);
            CHECK(out == 2 * in);
            const HostAudit audit = host->audit();
            CHECK(audit.threads == 1);
            CHECK(!audit.stamps_disagree);
        }
    }

    TEST_CASE("kernel_host: inputs restored before the start are what the kernel sees") {
        Lab lab;
        auto host = lab.host(lab.build(kDouble));
        HostCall call = call_of(1);
        const float wrong = 100, right = 3;
        std::memcpy(host->buffer(0).data(), &wrong, sizeof wrong);
        call.before_start = [&] { std::memcpy(host->buffer(0).data(), &right, sizeof right); };
        host->call(call);
        float out = 0;
        std::memcpy(&out, host->buffer(1).data(), sizeof out);
        CHECK(out == 6);
        host->audit();
    }

    TEST_CASE("kernel_host: names how a kernel ended its process") {
        Lab lab;
        using Kind = HostFailure::Kind;
        auto crashing = lab.host(lab.build("*(volatile int*)8 = 1; (void)x; (void)y; (void)n;"));
        CHECK(failure_of(*crashing, call_of(1)) == Kind::crashed);
        auto leaving = lab.host(lab.build(
            "long r; __asm__ volatile(\"syscall\" : \"=a\"(r) : \"a\"(231L), \"D\"(0L) : \"rcx\", "
            "\"r11\"); (void)x; (void)y; (void)n;"));
        CHECK(failure_of(*leaving, call_of(1)) == Kind::exited);
        auto endless =
            lab.host(lab.build("volatile int i = 0; while (!i) {} (void)x; (void)y; (void)n;"));
        CHECK(failure_of(*endless, call_of(1, std::chrono::milliseconds(200))) == Kind::timed_out);
    }

    TEST_CASE("kernel_host: a write to an input faults and is named, also after mprotect") {
        Lab lab;
        for (const std::string prepare : {"", "protect((void*)((long)x & -4096L), 4096, 3);"}) {
            CAPTURE(prepare);
            const BuildResult built =
                lab.build("int protect(void*, unsigned long, int) __asm__(\"mprotect\"); " +
                          prepare + " const_cast<float*>(x)[0] = 1; (void)y; (void)n;");
            REQUIRE_MESSAGE(built.ok, built.diagnostics);
            auto host = lab.host(built);
            try {
                host->call(call_of(1));
                FAIL("the write went through");
            } catch (const HostFailure& failure) {
                CHECK(failure.fault == host::Fault::input_write);
                CHECK(failure.fault_buffer == 0);
            }
        }
    }

    TEST_CASE("kernel_host: threads are refused, and counted where they are not") {
        Lab lab;
        // A raw clone of a thread that sleeps for ever: nothing of it shows among the imports.
        const std::string body =
            "static char stack[65536]; long r; "
            "register long r10 __asm__(\"r10\") = 0; register long r8 __asm__(\"r8\") = 0; "
            "__asm__ volatile(\"syscall\\n test %%rax, %%rax\\n jnz 1f\\n"
            " 2: mov $34, %%eax\\n syscall\\n jmp 2b\\n 1:\" "
            ": \"=a\"(r) : \"a\"(56L), \"D\"(0x50f00L), \"S\"((long)(stack + 65000)), \"d\"(0L), "
            "\"r\"(r10), \"r\"(r8) : \"rcx\", \"r11\", \"memory\"); "
            "y[0] = r > 0 ? 1.0f : -1.0f; (void)x; (void)n;";
        const BuildResult built = lab.build(body);
        REQUIRE_MESSAGE(built.ok, built.diagnostics);
        for (const bool deny : {true, false}) {
            CAPTURE(deny);
            auto host = lab.host(built, deny);
            host->call(call_of(1));
            float made = 0;
            std::memcpy(&made, host->buffer(1).data(), sizeof made);
            CHECK((made > 0) == !deny);
            CHECK((host->audit().threads > 1) == !deny);
        }
    }

    TEST_CASE("kernel_host: a library that cannot be loaded says why") {
        Lab lab;
        BuildResult built = lab.build(kDouble);
        test::put_file(lab.directory / "text.so", "no library");
        built.library = lab.directory / "text.so";
        CHECK_THROWS_AS(lab.host(built), HostFailure);
    }
}

TEST_SUITE("tools/profiler/kernel_build") {
    TEST_CASE("kernel_build: keeps diagnostics short and names the place") {
        Lab lab;
        const BuildResult built = lab.build("undeclared = 1;");
        CHECK(!built.ok);
        CHECK(built.diagnostics.find("kernel.cc:1") != std::string::npos);
        CHECK(built.diagnostics.size() <= kDiagnosticBytes + 100);
    }

    TEST_CASE("kernel_build: the same request is built once, another flag is another library") {
        Lab lab;
        const BuildResult first = lab.build(kDouble);
        const BuildResult second = lab.build(kDouble);
        CHECK(second.seconds == 0);
        CHECK(second.library == first.library);
        CHECK(lab.build(kDouble, {"-O3"}).library != first.library);
    }

    TEST_CASE("kernel_build: unresolved symbols and a foreign entry do not link") {
        Lab lab;
        const BuildResult open_end =
            lab.build("int f() __asm__(\"nowhere\"); y[0] = f(); (void)x; (void)n;");
        CHECK(!open_end.ok);
        CHECK(open_end.diagnostics.find("nowhere") != std::string::npos);
        const BuildResult entry =
            lab.build("} extern \"C\" void skein_call(void* const*, const long*) {");
        CHECK(!entry.ok);
        CHECK(entry.diagnostics.find("skein_call") != std::string::npos);
    }

    TEST_CASE("kernel_build: the compiler sees no file of this machine") {
        Lab lab;
        const BuildResult built = lab.build("\n#include \"" SKEIN_SOURCE_DIR "/CMakeLists.txt\"\n");
        CHECK(!built.ok);
        CHECK(built.diagnostics.find("No such file") != std::string::npos);
        const BuildResult included = lab.build("__asm__(\".incbin \\\"/etc/shadow\\\"\");");
        CHECK(!included.ok);
    }

    TEST_CASE("kernel_build: the binary tells what it imports and defines") {
        Lab lab;
        const BuildResult built =
            lab.build("int pid() __asm__(\"getpid\"); y[0] = pid(); (void)x; (void)n;");
        REQUIRE_MESSAGE(built.ok, built.diagnostics);
        const auto has = [](const std::vector<std::string>& names, const char* wanted) {
            return std::find(names.begin(), names.end(), wanted) != names.end();
        };
        CHECK(has(built.symbols.imports, "getpid"));
        CHECK(has(built.symbols.defines, "kernel"));
        CHECK(has(built.symbols.defines, "skein_call"));
        CHECK(has(built.symbols.needed, "libc.so.6"));
    }
}
