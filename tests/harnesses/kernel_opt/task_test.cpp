#include "harnesses/kernel_opt/task.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "tests/harnesses/kernel_opt/kernel_check.h"

using namespace skein;
using namespace skein::harnesses;
namespace fs = std::filesystem;

namespace {

std::string read_text(const fs::path& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// A private copy of sgemv in which one text of one file is replaced.
class EditedTask {
  public:
    EditedTask() { fs::copy(tasks_root() / "sgemv", directory(), fs::copy_options::recursive); }

    void replace(const std::string& file, const std::string& from, const std::string& to) {
        std::string text = read_text(directory() / file);
        const std::size_t at = text.find(from);
        REQUIRE_MESSAGE(at != std::string::npos, file, " has no ", from);
        text.replace(at, from.size(), to);
        std::ofstream(directory() / file) << text;
    }

    std::string failure() const {
        try {
            load_task(directory());
        } catch (const std::runtime_error& error) {
            return error.what();
        }
        return "accepted";
    }

    fs::path directory() const { return scratch_.path() / "sgemv"; }

  private:
    skein::testing::ScratchDirectory scratch_;
};

bool mentions(const std::string& text, std::string_view part) {
    return text.find(part) != std::string::npos;
}

std::string failure_after(const std::string& file, const std::string& from, const std::string& to) {
    EditedTask task;
    task.replace(file, from, to);
    return task.failure();
}

}  // namespace

TEST_SUITE("harnesses/kernel_opt/task") {
    TEST_CASE("every field of a task file is read") {
        const KernelTask task = load_task(tasks_root() / "sgemv");
        CHECK(task.id == "sgemv");
        CHECK(task.version == 1);
        CHECK(task.licence == "Apache-2.0");
        CHECK(mentions(task.canary, "skein-task-sgemv-"));
        CHECK(mentions(task.prompt, task.canary));
        CHECK(task.signature.entry == "sgemv");
        CHECK(task.axes == std::vector<std::string>{"m", "n"});
        CHECK(task.tolerance.k == "n");
        CHECK_FALSE(task.tolerance.exact);
        CHECK(task.language_standard == "c++20");
        CHECK(task.flags == std::vector<std::string>{"-O3", "-march=native"});
        CHECK(task.visible.front().timed);
        CHECK(task.visible.front().sizes == tools::Sizes{{"m", 1024}, {"n", 1024}});
        CHECK(mentions(task.anchor_source, "extern \"C\" void sgemv"));
        CHECK(read_text(task.directory / "start" / "kernel.cc") == task.anchor_source);
    }

    TEST_CASE("a trailing slash does not change a task's directory") {
        CHECK(load_task((tasks_root() / "sgemv").string() + "/").id == "sgemv");
    }

    TEST_CASE("all tasks load in the order of their ids and only the scan is a control") {
        const std::vector<KernelTask> tasks = load_tasks(tasks_root());
        std::vector<std::string> ids;
        for (const KernelTask& task : tasks) {
            ids.push_back(task.id);
            CHECK(task.control == (task.id == "scan"));
        }
        CHECK(ids == std::vector<std::string>{"conv3x3", "histogram", "rmsnorm", "scan", "sgemm",
                                              "sgemv", "softmax", "transpose"});
    }

    TEST_CASE("a changed anchor is refused with both hashes") {
        const std::string failure = failure_after("anchor.cc", "sum", "total");
        CHECK(mentions(failure, "anchor.cc"));
        CHECK(mentions(failure, "SHA-256 expected"));
    }

    TEST_CASE("faults in task files name the file, the key and what was expected") {
        CHECK(mentions(failure_after("task.json", "\"regime\"", "\"regimes\""), "regime: missing"));
        CHECK(mentions(
            failure_after("task.json", "\"control\": false", "\"control\": false, \"tier\": 1"),
            "task.json: tier: unknown key"));
        CHECK(mentions(failure_after("task.json", "\"version\": 1", "\"version\": \"1\""),
                       "version: expected a positive integer, got \"1\""));
        CHECK(mentions(failure_after("task.json", "\"version\": 1", "\"version\": 1.5"),
                       "version: expected a positive integer"));
        CHECK(mentions(failure_after("task.json", "\"id\": \"sgemv\"", "\"id\": \"gemv\""),
                       "the directory's name 'sgemv'"));
        CHECK(mentions(failure_after("task.json", "\"noise_factor\": 4", "\"noise_factor\": -4"),
                       "tolerance.noise_factor: expected a number that is not negative"));
        CHECK(mentions(failure_after("task.json", "[\"m\", \"n\"]", "[\"m\"]"), "axes: expected"));
        CHECK(mentions(failure_after("task.json", "\"count\": \"m * n\"", "\"count\": \"m * q\""),
                       "unknown name 'q'"));
        CHECK(mentions(failure_after("task.json", "{", "["), "not JSON"));
        CHECK(mentions(failure_after("visible.json", "\"m\": 1024", "\"m\": -1"),
                       "cases[0].sizes.m: expected an integer"));
        CHECK(mentions(failure_after("visible.json", "\"n\": 1024", "\"n\": 1024, \"k\": 1"),
                       "cases[0].sizes.k: unknown key"));
        CHECK(mentions(failure_after("visible.json", "\"timed\": true", "\"timed\": false"),
                       "no case is timed"));
        CHECK(mentions(failure_after("hidden/hidden.json", "\"one\"", "\"nominal\""),
                       "the name is used twice"));
    }

    TEST_CASE("a missing file of a task is named") {
        EditedTask task;
        fs::remove(task.directory() / "reference.cc");
        CHECK(mentions(task.failure(), "reference.cc: missing"));
        fs::remove(task.directory() / "task.json");
        CHECK(mentions(task.failure(), "task.json: cannot be read"));
    }

    TEST_CASE("a folder without tasks is an error") {
        const skein::testing::ScratchDirectory empty;
        CHECK_THROWS_AS(load_tasks(empty.path()), std::runtime_error);
        CHECK_THROWS_AS(load_tasks(empty.path() / "absent"), std::runtime_error);
    }
}
