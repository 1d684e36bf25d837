#include "agent/store/writer.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <random>

#include "agent/store/error.h"
#include "tests/agent/store/store_fixture.h"

using namespace skein::agent;
using namespace skein::agent::store;
using namespace skein::test;

namespace {

/// Forks; the child runs `work` and leaves without running any destructor of ours.
template <class Work>
pid_t in_child(Work work) {
    const pid_t pid = fork();
    if (pid == 0) {
        int code = 0;
        try {
            code = work();
        } catch (const std::exception&) {
            code = 99;
        }
        _exit(code);
    }
    return pid;
}

int wait_for(pid_t pid) {
    int status = 0;
    waitpid(pid, &status, 0);
    return status;
}

}  // namespace

TEST_SUITE("agent/store/writer") {
    TEST_CASE("writer: what was flushed survives kill -9 at any moment") {
        constexpr unsigned kSeed = 11;
        MESSAGE("seed ", kSeed);
        std::mt19937 random(kSeed);
        for (int round = 0; round < 15; ++round) {
            const TemporaryDirectory directory;
            int pipe_fds[2];
            REQUIRE(pipe(pipe_fds) == 0);
            const pid_t child = in_child([&] {
                auto writer = Writer::create(directory.path(), run_record());
                const auto trajectory = trajectory_record();
                writer->begin_trajectory(trajectory);
                for (int n = 0;; ++n) {
                    writer->record_step(step_record(trajectory.uid, n));
                    if (n % 3 == 2) {
                        writer->flush();
                        if (write(pipe_fds[1], &n, sizeof n) != sizeof n) return 1;
                    }
                }
                return 0;
            });
            close(pipe_fds[1]);
            // Read some acknowledgements, then kill: no clock decides when.
            int acknowledged = -1;
            const int reads = 1 + static_cast<int>(random() % 12);
            for (int i = 0; i < reads; ++i) {
                REQUIRE(read(pipe_fds[0], &acknowledged, sizeof acknowledged) ==
                        sizeof acknowledged);
            }
            kill(child, SIGKILL);
            wait_for(child);
            int late = 0;
            while (read(pipe_fds[0], &late, sizeof late) == sizeof late) acknowledged = late;
            close(pipe_fds[0]);

            CAPTURE(round);
            const Reader reader(directory.path());
            CHECK(reader.verify().empty());
            const auto trajectories = reader.trajectories();
            REQUIRE(trajectories.size() == 1);
            CHECK(trajectories[0].status == "running");
            const auto steps = reader.steps(trajectories[0].record.uid);
            CHECK(static_cast<int>(steps.size()) > acknowledged);
            for (std::size_t i = 0; i < steps.size(); ++i) {
                CHECK(steps[i].record.sequence == static_cast<int>(i));
            }
        }
    }

    TEST_CASE("G01 writer: eight processes write a thousand rows each while a ninth reads") {
        const TemporaryDirectory directory;
        Writer::create(directory.path(), run_record()).reset();
        std::vector<pid_t> children;
        for (int process = 0; process < 8; ++process) {
            children.push_back(in_child([&] {
                auto writer = Writer::open(directory.path());
                for (int row = 0; row < 1000; ++row) {
                    writer->record_event(std::nullopt, "row",
                                         "{\"process\":" + std::to_string(process) +
                                             ",\"row\":" + std::to_string(row) + "}");
                    if (row % 100 == 99) writer->flush();
                }
                writer->flush();
                return 0;
            }));
        }
        std::size_t seen = 0;
        const Reader reader(directory.path());
        while (seen < 4000) {
            const std::size_t now = reader.events("row").size();
            CHECK(now >= seen);  // never fewer than before
            seen = now;
        }
        for (const pid_t child : children) CHECK(wait_for(child) == 0);
        CHECK(reader.events("row").size() == 8000);
        CHECK(reader.verify().empty());
    }

    TEST_CASE("writer: a full disk is an error in the call that failed, earlier rows stay") {
        const TemporaryDirectory directory;
        const pid_t child = in_child([&] {
            signal(SIGXFSZ, SIG_IGN);
            auto writer = Writer::create(directory.path(), run_record());
            const auto trajectory = trajectory_record();
            writer->begin_trajectory(trajectory);
            writer->record_step(step_record(trajectory.uid, 0));
            writer->flush();
            const rlimit limit{1 << 20, 1 << 20};
            setrlimit(RLIMIT_FSIZE, &limit);
            std::string noise;
            std::mt19937 random(3);
            try {
                for (int i = 0; i < 200; ++i) {
                    noise.clear();
                    for (int k = 0; k < 20000; ++k) noise += static_cast<char>(random());
                    writer->put_blob(noise);
                    writer->flush();
                }
            } catch (const Error& error) {
                const std::string what = error.what();
                if (what.find("skein.db") == std::string::npos) return 2;
                try {
                    writer->record_event(std::nullopt, "later", "{}");
                } catch (const Error&) {
                    return 7;  // refused from then on: no row without its predecessors
                }
                return 3;
            }
            return 4;
        });
        const int status = wait_for(child);
        REQUIRE(WIFEXITED(status));
        CHECK(WEXITSTATUS(status) == 7);
        const Reader reader(directory.path());
        CHECK(reader.verify().empty());
        CHECK(reader.run().n_steps == 1);
        auto writer = Writer::open(directory.path());  // with space again, it goes on
        writer->record_event(std::nullopt, "resumed", "{}");
        writer->flush();
        CHECK(reader.events("resumed").size() == 1);
    }

    TEST_CASE("writer: a folder that cannot be made is an error that says what to do") {
        try {
            Writer::create("/dev/null/run", run_record());
            FAIL("made a store below a device");
        } catch (const Error& error) {
            CHECK(std::string(error.what()).find("--run-dir") != std::string::npos);
        }
    }
}
