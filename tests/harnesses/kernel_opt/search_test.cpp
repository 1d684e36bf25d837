#include "harnesses/kernel_opt/search.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "tests/harnesses/kernel_opt/fake_kernel.h"

using namespace skein::harnesses;
using namespace skein::test;

namespace {

/// The best speedup found in `budget` evaluations of the fake space.
double best_found(bool thompson, std::uint64_t seed, int budget) {
    const FakeGenerator generator;
    SearchRng rng(seed);
    std::vector<Observation> seen;
    std::vector<Configuration> tried;
    double best = 0;
    for (int i = 0; i < budget; ++i) {
        const auto at = thompson ? propose_thompson(generator, seen, tried, {}, rng)
                                 : propose_uniform(generator, tried, rng);
        if (!at) break;
        const Verdict verdict = fake_verdict({generator.source(*at), generator.flags(*at)});
        tried.push_back(*at);
        seen.push_back({*at, verdict.ok() ? std::log(verdict.speedup) : kFailedLogSpeedup});
        best = std::max(best, verdict.speedup);
    }
    return best;
}

}  // namespace

TEST_SUITE("harnesses/kernel_opt/search") {
    TEST_CASE("search: the same seed proposes the same, another seed something else") {
        CHECK(best_found(true, 3, 12) == best_found(true, 3, 12));
        SearchRng a(1), b(1), c(2);
        CHECK(a.bits() == b.bits());
        CHECK(a.bits() != c.bits());
    }

    TEST_CASE("search: no proposal is illegal or repeated, and the space ends") {
        const FakeGenerator generator;
        for (const bool thompson : {false, true}) {
            SearchRng rng(5);
            std::vector<Configuration> tried;
            std::vector<Observation> seen;
            while (true) {
                const auto at = thompson ? propose_thompson(generator, seen, tried, {}, rng)
                                         : propose_uniform(generator, tried, rng);
                if (!at) break;
                CHECK(generator.legal(*at));
                CHECK(std::find(tried.begin(), tried.end(), *at) == tried.end());
                tried.push_back(*at);
                seen.push_back({*at, 0.1});
            }
            CHECK(tried.size() == 256 - 3 * 4 * 4);
        }
    }

    TEST_CASE(
        "search: the pool holds every legal point of a small space, a sample of a large one") {
        const FakeGenerator generator;
        SearchRng rng(1);
        const auto all = candidate_pool(generator, 10000, rng);
        CHECK(all.size() == 208);
        CHECK(std::set<Configuration>(all.begin(), all.end()).size() == 208);
        CHECK(candidate_pool(generator, 50, rng).size() == 50);
    }

    TEST_CASE("search: Thompson sampling finds more than uniform draws in the same budget") {
        double thompson = 0, uniform = 0;
        for (std::uint64_t seed = 0; seed < 40; ++seed) {
            thompson += best_found(true, seed, 16);
            uniform += best_found(false, seed, 16);
        }
        CAPTURE(thompson / 40);
        CAPTURE(uniform / 40);
        CHECK(thompson > uniform);
    }

    TEST_CASE("search: normal draws have mean 0 and deviation 1") {
        SearchRng rng(9);
        double sum = 0, squares = 0;
        constexpr int kDraws = 20000;
        for (int i = 0; i < kDraws; ++i) {
            const double z = rng.normal();
            sum += z;
            squares += z * z;
        }
        CHECK(std::abs(sum / kDraws) < 0.03);
        CHECK(std::abs(squares / kDraws - 1) < 0.05);
    }
}
