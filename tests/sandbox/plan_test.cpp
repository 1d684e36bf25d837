#include "sandbox/plan.h"

#include <doctest/doctest.h>

namespace skein::sandbox {
namespace {

Plan example() {
    Plan plan;
    plan.bwrap = "/usr/bin/bwrap";
    plan.mounts.push_back({PlanMount::file, std::string("a\0b", 3), "/etc/x", 7, 1});
    plan.argv = {"bash", "-c", ""};
    plan.environment = {"A=1"};
    plan.descriptor_targets = {3, 200};
    plan.landlock_writable = {"/tmp"};
    plan.memory_bytes = 1ULL << 40;
    return plan;
}

TEST_SUITE_BEGIN("sandbox/plan");

TEST_CASE("a plan survives the way to the runner") {
    Plan back;
    REQUIRE(decode_plan(encode_plan(example()), back));
    CHECK(back.bwrap == "/usr/bin/bwrap");
    CHECK(back.mounts.at(0).source == std::string("a\0b", 3));
    CHECK(back.mounts.at(0).optional == 1);
    CHECK(back.argv == example().argv);
    CHECK(back.descriptor_targets == example().descriptor_targets);
    CHECK(back.memory_bytes == 1ULL << 40);
    CHECK(encode_plan(back) == encode_plan(example()));
}

TEST_CASE("every truncation and every extension is refused") {
    const std::string bytes = encode_plan(example());
    Plan plan;
    for (std::size_t n = 0; n < bytes.size(); ++n)
        CHECK_FALSE(decode_plan(bytes.substr(0, n), plan));
    CHECK_FALSE(decode_plan(bytes + "x", plan));
}

TEST_CASE("a damaged byte never crashes or allocates without bound") {
    const std::string bytes = encode_plan(example());
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        std::string damaged = bytes;
        damaged[i] = '\xff';
        Plan plan;
        decode_plan(damaged, plan);
    }
    CHECK(true);
}

TEST_SUITE_END();

}  // namespace
}  // namespace skein::sandbox
