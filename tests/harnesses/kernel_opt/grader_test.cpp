// The grader end to end: its own program, real compilers, real sandboxes, real cheats.
#include "harnesses/kernel_opt/grader.h"

#include <doctest/doctest.h>

#include "harnesses/kernel_opt/adversaries.h"
#include "tests/support/run_now.h"
#include "tests/support/temporary_directory.h"

using namespace skein;
using namespace skein::harnesses;

namespace {

/// Grader, its task and a place to run its answers.
struct Bench {
    explicit Bench(const std::string& id) : Bench(load_task(tasks_root() / id)) {}
    explicit Bench(KernelTask kernel_task)
        : task(std::move(kernel_task)), sandbox(sandbox::make_linux_sandbox()) {
        GraderOptions options;
        options.scratch = directory.path() / "grader";
        options.secret = 0x5eedc0ffee;
        options.call_timeout = std::chrono::milliseconds(2000);
        grader = make_grader(task, *sandbox, options);
    }

    Verdict grade(std::string source, Stage stage, std::vector<std::string> flags = {}) {
        Candidate candidate{std::move(source), std::move(flags)};
        return test::run_now(grader->grade(std::move(candidate), stage));
    }

    test::TemporaryDirectory directory;
    KernelTask task;
    std::unique_ptr<sandbox::Sandbox> sandbox;
    std::unique_ptr<Grader> grader;
};

std::string sgemv(const std::string& body) {
    return "#include <cstdint>\n"
           "extern \"C\" void sgemv(const float* a, const float* x, float* y, std::int64_t m,\n"
           "                      std::int64_t n) {\n" +
           body + "\n}\n";
}

constexpr const char* kHonest =
    "for (std::int64_t i = 0; i < m; ++i) { float sum = 0;"
    " for (std::int64_t j = 0; j < n; ++j) sum += a[i * n + j] * x[j]; y[i] = sum; }";

}  // namespace

TEST_SUITE("harnesses/kernel_opt/grader") {
    TEST_CASE("grader: finds every cheat and flags no honest kernel") {
        CHECK(adversaries().size() >= 12);
        Bench bench("sgemv");
        const auto results = test::run_now(check_adversaries(bench.task, *bench.grader));
        CHECK(results.size() == adversaries().size() + 2);
        for (const AdversaryResult& result : results) {
            CAPTURE(result.name);
            CAPTURE(result.expected);
            CAPTURE(to_string(result.verdict.status));
            CAPTURE(result.verdict.hack);
            CAPTURE(result.verdict.message);
            CHECK(result.right);
        }
    }

    TEST_CASE("grader: says what is wrong in words the author can use") {
        Bench bench("sgemv");
        const Verdict broken = bench.grade(sgemv("y[0] = undeclared;"), Stage::compile);
        CHECK(broken.status == VerdictStatus::compile_error);
        CHECK(broken.message.find("undeclared") != std::string::npos);

        const Verdict own_entry = bench.grade(
            sgemv(kHonest) + "extern \"C\" void skein_call(void* const*, const long*) {}",
            Stage::compile);
        CHECK(own_entry.status == VerdictStatus::compile_error);

        const Verdict flag = bench.grade(sgemv(kHonest), Stage::compile, {"-fplugin=evil.so"});
        CHECK(flag.status == VerdictStatus::forbidden);

        const Verdict wrong = bench.grade(sgemv("for (long i = 0; i < m; ++i) y[i] = 1;"
                                                "(void)a; (void)x; (void)n;"),
                                          Stage::small);
        CHECK(wrong.status == VerdictStatus::wrong_values);
        CHECK(wrong.message.find("`y`[") != std::string::npos);
        CHECK(wrong.message.find("expected") != std::string::npos);
        CHECK(wrong.stage == "small");

        const Verdict crash = bench.grade(sgemv("*(volatile int*)8 = 1;"), Stage::small);
        CHECK(crash.status == VerdictStatus::crash);

        const Verdict outside =
            bench.grade(sgemv(std::string(kHonest) + " y[m] = 1;"), Stage::small);
        CHECK(outside.status == VerdictStatus::crash);
        CHECK(outside.message.find("`y`") != std::string::npos);

        const Verdict endless =
            bench.grade(sgemv("volatile int i = 0; while (i == 0) {}"), Stage::small);
        CHECK(endless.status == VerdictStatus::timeout);

        // After all of this an honest kernel is still an honest kernel.
        CHECK(bench.grade(sgemv(kHonest), Stage::full).ok());
    }

    TEST_CASE("grader: an anchor against itself is no faster, and a better kernel is") {
        Bench bench("sgemv");
        const Verdict self = test::run_now(bench.grader->self_trial());
        CAPTURE(self.message);
        CHECK((self.status == VerdictStatus::ok || self.status == VerdictStatus::noisy));
        REQUIRE(self.shapes.size() == 1);
        CHECK(self.shapes[0].anchor_ns.size() == self.shapes[0].candidate_ns.size());
        CHECK(self.limit_fraction <= 1);
        MESSAGE("self trial: " << self.speedup << " [" << self.speedup_low << ", "
                               << self.speedup_high << "]");
    }

    TEST_CASE("grader: prepared candidates are already compiled") {
        Bench bench("sgemv");
        std::vector<Candidate> candidates{{sgemv(kHonest), {"-Ofast"}}, {sgemv(kHonest), {}}};
        test::run_now(bench.grader->prepare(candidates));
        const Verdict verdict = bench.grade(sgemv(kHonest), Stage::compile, {"-Ofast"});
        CHECK(verdict.ok());
        CHECK(verdict.seconds_compile == 0);
    }

    TEST_CASE("grader: no null candidate is admitted") {
        for (const char* id : {"sgemv", "softmax"}) {
            Bench bench(id);
            const auto failures = test::run_now(bench.grader->admission_failures());
            CAPTURE(id);
            CHECK(failures.empty());
        }
    }

    TEST_CASE("grader: a time below what the machine can do is invalid, not a record") {
        // A task that claims a million times its work puts an honest kernel below the limit.
        test::TemporaryDirectory directory;
        const auto copy = directory / "sgemv";
        std::filesystem::copy(tasks_root() / "sgemv", copy,
                              std::filesystem::copy_options::recursive);
        std::string json = test::get_file(copy / "task.json");
        const std::string honest = "\"2 * m * n\"";
        json.replace(json.find(honest), honest.size(), "\"2000000 * m * n\"");
        test::put_file(copy / "task.json", json);
        Bench bench(load_task(copy));
        const Verdict verdict = bench.grade(sgemv(kHonest), Stage::time);
        CAPTURE(verdict.message);
        CHECK(verdict.status == VerdictStatus::invalid_measurement);
        CHECK(verdict.message.find("limit") != std::string::npos);
    }

    TEST_CASE("grader: a task that does not build is an error, not a verdict") {
        test::TemporaryDirectory directory;
        KernelTask task = load_task(tasks_root() / "sgemv");
        std::filesystem::copy(task.directory, directory.path() / "sgemv",
                              std::filesystem::copy_options::recursive);
        std::filesystem::remove(directory.path() / "sgemv" / "reference.cc");
        task.directory = directory.path() / "sgemv";
        auto sandbox = sandbox::make_linux_sandbox();
        GraderOptions options;
        options.scratch = directory.path() / "grader";
        CHECK_THROWS_WITH_AS(make_grader(task, *sandbox, options),
                             doctest::Contains("reference.cc"), std::runtime_error);
    }
}
