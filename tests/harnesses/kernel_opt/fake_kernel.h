#pragma once
// A kernel task without compilers or clocks: a small move space whose speedups are a formula, a
// grader that applies it, and what tests of the search loop need around them.

#include <cstdio>

#include "harnesses/kernel_opt/kernel_session.h"
#include "harnesses/kernel_opt/optimise.h"
#include "tests/support/run_now.h"
#include "tests/support/temporary_directory.h"

namespace skein::test {

/// Four dimensions; the speedup is a product of one factor a chosen value, with one interaction.
class FakeGenerator : public harnesses::KernelGenerator {
  public:
    FakeGenerator() {
        for (const char* name : {"tile", "unroll", "vector", "flags"}) {
            dimensions_.push_back({name, std::string("the ") + name, {"0", "1", "2", "3"}});
        }
    }
    std::string_view task_id() const override { return "fake"; }
    const std::vector<harnesses::Dimension>& dimensions() const override { return dimensions_; }
    /// The highest tile cannot be unrolled.
    bool legal(const harnesses::Configuration& at) const override {
        return !(at[0] == 3 && at[1] > 0);
    }
    std::string source(const harnesses::Configuration& at) const override {
        std::string text = "cfg";
        for (std::size_t d = 0; d < 3; ++d) text += " " + std::to_string(at[d]);
        return text;
    }
    std::vector<std::string> flags(const harnesses::Configuration& at) const override {
        return at[3] == 0 ? std::vector<std::string>{}
                          : std::vector<std::string>{"-f" + std::to_string(at[3])};
    }

  private:
    std::vector<harnesses::Dimension> dimensions_;
};

/// What FakeGrader says of a program; wrong for vector 3 with unroll 3.
inline harnesses::Verdict fake_verdict(const harnesses::Candidate& candidate) {
    harnesses::Verdict verdict;
    int a = 0, b = 0, c = 0;
    if (std::sscanf(candidate.source.c_str(), "cfg %d %d %d", &a, &b, &c) != 3) {
        verdict.status = candidate.source == "anchor" ? harnesses::VerdictStatus::ok
                                                      : harnesses::VerdictStatus::compile_error;
        verdict.message = "expected ';'";
        verdict.speedup = verdict.ok() ? 1.0 : 0.0;
    } else if (b == 3 && c == 3) {
        verdict.status = harnesses::VerdictStatus::wrong_values;
        verdict.message = "case tail: element 3 is 0, expected 1";
    } else {
        verdict.status = harnesses::VerdictStatus::ok;
        verdict.speedup = (1 + 0.3 * a) * (1 + 0.2 * b) * (1 + 0.5 * c);
    }
    if (!candidate.flags.empty()) verdict.speedup *= 1.1;
    verdict.speedup_low = verdict.speedup * 0.97;
    verdict.speedup_high = verdict.speedup * 1.03;
    verdict.limit_fraction = 0.1;
    return verdict;
}

/// Counts what it grades in `graded`, and can be told to fail at a certain number.
class FakeGrader : public harnesses::Grader {
  public:
    FakeGrader(int& graded, int die_at) : graded_(graded), die_at_(die_at) {}
    boost::asio::awaitable<harnesses::Verdict> grade(harnesses::Candidate candidate,
                                                     harnesses::Stage) override {
        if (graded_ == die_at_) throw std::runtime_error("the process was killed here");
        ++graded_;
        co_return fake_verdict(candidate);
    }
    boost::asio::awaitable<void> prepare(std::vector<harnesses::Candidate>) override { co_return; }
    boost::asio::awaitable<harnesses::Verdict> self_trial() override {
        co_return fake_verdict({"anchor", {}});
    }
    boost::asio::awaitable<std::vector<std::string>> admission_failures() override {
        co_return std::vector<std::string>{};
    }

  private:
    int& graded_;
    int die_at_;
};

inline harnesses::KernelTask fake_task() {
    harnesses::KernelTask task;
    task.id = "fake";
    task.title = "a fake kernel";
    task.anchor_source = "anchor";
    task.allowed_flags = {"-f1", "-f2", "-f3"};
    task.prompt = "Make it fast.";
    return task;
}

inline agent::store::RunRecord fake_run() {
    return {agent::Uid::make(), "kernel_opt", "skein run", "version: 1\n", "0"};
}

/// A session over a store in a directory of its own; opening a second one on the same directory
/// stands for a resumed process.
struct FakeProcess {
    explicit FakeProcess(const std::filesystem::path& directory, int die_at = -1)
        : writer(std::filesystem::exists(directory / "skein.db")
                     ? agent::store::Writer::open(directory)
                     : agent::store::Writer::create(directory, fake_run())),
          journal(*writer, agent::store::Reader(directory).events()),
          session(
              task, &generator,
              [this, die_at] { return std::make_unique<FakeGrader>(graded, die_at); }, journal,
              agent::Uid::make()) {}

    harnesses::KernelTask task = fake_task();
    FakeGenerator generator;
    int graded = 0;
    std::unique_ptr<agent::store::Writer> writer;
    harnesses::Journal journal;
    harnesses::KernelSession session;
};

}  // namespace skein::test
