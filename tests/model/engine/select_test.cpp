// Block selection and block scores as pure functions, with ties, NaN and edges.
#include "model/attention/select.h"

#include <doctest/doctest.h>

#include <boost/json.hpp>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>

#include "model/cpu/kernels.h"
#include "model/load/safetensors.h"
#include "tests/model/engine/engine_fixtures.h"
#include "tests/support/npy.h"

using namespace skein;
using namespace skein::model;
namespace json = boost::json;

namespace {

json::value read_json(const char* name) {
    return json::parse(test::read_text(test::fixtures() / "msa-select" / name));
}

float number(const json::value& value) {
    if (value.is_string()) {
        if (value.as_string() == "nan") return std::nanf("");
        const float sign = value.as_string().starts_with("-") ? -1.0F : 1.0F;
        return sign * std::numeric_limits<float>::infinity();
    }
    return value.to_number<float>();
}

std::vector<std::int32_t> integers(const json::value& list) {
    return json::value_to<std::vector<std::int32_t>>(list);
}

std::vector<std::int32_t> select(std::span<const float> scores, int own, const MsaConfig& msa,
                                 std::span<const std::uint8_t> evicted = {}) {
    std::vector<std::int32_t> out(static_cast<std::size_t>(msa.top_k), -7);
    const auto n = static_cast<std::size_t>(select_blocks(scores, own, msa, evicted, out));
    for (std::size_t i = n; i < out.size(); ++i) CHECK(out[i] == -1);
    out.resize(n);
    return out;
}

/// [group][token][block] scores of layer 2 of m3-tiny, and the selections that follow from them.
struct Trace {
    std::string file = test::read_text(test::fixtures() / "m3-tiny" / "trace.safetensors");
    std::vector<float> scores;
    std::vector<std::uint64_t> shape;
    test::NpyArray selected = test::load_npy(test::fixtures() / "m3-tiny" / "selected_all.npy");
    Trace() {
        const std::span<const char> bytes(file);
        for (const auto& entry : parse_safetensors(std::as_bytes(bytes), "trace").entries) {
            if (entry.name != "layers.2.block_scores") continue;
            shape = entry.shape;
            scores.resize(entry.data.size() / sizeof(float));
            std::memcpy(scores.data(), entry.data.data(), entry.data.size());
        }
        REQUIRE(shape.size() == 3);
    }
    const float* row(std::size_t group, std::size_t token) const {
        return scores.data() + (group * shape[1] + token) * shape[2];
    }
    /// How many of the stored selections `choose(group, token, own)` misses.
    template <typename Choose>
    int misses(const Choose& choose) const {
        int wrong = 0;
        for (std::size_t g = 0; g < shape[0]; ++g)
            for (std::size_t t = 0; t < shape[1]; ++t) {
                std::vector<std::int32_t> expected;
                for (std::size_t i = 0; i < 4; ++i) {
                    const float id = selected.row(g * shape[1] + t)[i];
                    if (id >= 0) expected.push_back(static_cast<std::int32_t>(id));
                }
                wrong += choose(g, t, static_cast<int>(t) / 16) != expected;
            }
        return wrong;
    }
};

}  // namespace

TEST_SUITE("model/attention/select") {
    TEST_CASE("selection: every case of ties, NaN, forced and future blocks") {
        const json::value cases = read_json("select.json");
        for (const json::value& value : cases.as_array()) {
            const json::object& one = value.as_object();
            CAPTURE(one.at("name").as_string().c_str());
            MsaConfig msa;
            msa.block_tokens = one.at("block").to_number<int>();
            msa.top_k = one.at("top_blocks").to_number<int>();
            msa.init_blocks = one.at("init_blocks").to_number<int>();
            msa.local_blocks = one.at("local_blocks").to_number<int>();
            std::vector<float> scores;
            for (const json::value& score : one.at("block_scores").as_array())
                scores.push_back(number(score));
            const int own = one.at("position").to_number<int>() / msa.block_tokens;
            CHECK(select(scores, own, msa) == integers(one.at("blocks")));
        }
    }

    TEST_CASE("selection: an evicted block is never chosen, and its place goes to the next") {
        MsaConfig msa;
        msa.block_tokens = 128;
        msa.top_k = 3;
        const std::vector<float> scores{5, 4, 3, 2, 1};
        const std::vector<std::uint8_t> evicted{1, 0, 1, 0, 0};
        CHECK(select(scores, 4, msa) == std::vector<std::int32_t>{0, 1, 4});
        CHECK(select(scores, 4, msa, evicted) == std::vector<std::int32_t>{1, 3, 4});
        const std::vector<std::uint8_t> all{1, 1, 1, 1, 0};
        CHECK(select(scores, 4, msa, all) == std::vector<std::int32_t>{4});
    }

    TEST_CASE("selection: blocks shared over the groups, or without the own one, never pass") {
        const Trace trace;
        MsaConfig msa;
        msa.block_tokens = 16;
        msa.top_k = 4;
        const auto n = static_cast<std::size_t>(trace.shape[2]);
        CHECK(trace.misses([&](std::size_t g, std::size_t t, int own) {
            return select({trace.row(g, t), n}, own, msa);
        }) == 0);
        CHECK(trace.misses([&](std::size_t, std::size_t t, int own) {
            std::vector<float> shared(trace.row(0, t), trace.row(0, t) + n);
            for (std::size_t b = 0; b < n; ++b) shared[b] = std::max(shared[b], trace.row(1, t)[b]);
            return select(shared, own, msa);
        }) > 100);
        CHECK(trace.misses([&](std::size_t g, std::size_t t, int own) {
            // The best four of all blocks: a query that starts a block of its own, placed after.
            return select({trace.row(g, t), n}, own + 1, [&] {
                MsaConfig five = msa;
                five.top_k = 5;
                return five;
            }());
        }) > 100);
    }

    TEST_CASE("block scores: maxima over visible tokens, negative ones too") {
        const json::value fixture = read_json("score.json");
        const json::object& one = fixture.as_object();
        const auto& queries = one.at("index_q").as_array();
        const auto& keys = one.at("index_k").as_array();
        // The kernels' smallest run is 8 tokens, the fixture's blocks have 4: each key stands
        // twice, which changes no maximum, and a query sees both or none.
        std::vector<float> transposed(8 * kBlockTokens, 0.0F);
        for (std::size_t j = 0; j < keys.size(); ++j)
            for (std::size_t d = 0; d < 8; ++d)
                for (std::size_t twice = 0; twice < 2; ++twice)
                    transposed[static_cast<std::size_t>(strip_at(
                        8, kBlockTokens, static_cast<int>(d), static_cast<int>(2 * j + twice)))] =
                        keys[j].as_array()[d].to_number<float>();
        MsaConfig msa;
        msa.block_tokens = 4;
        msa.top_k = one.at("top_blocks").to_number<int>();
        for (const CpuKernels* table : available_kernels()) {
            for (std::size_t group = 0; group < queries.size(); ++group) {
                const auto& rows = queries[group].as_array();
                for (std::size_t t = 0; t < rows.size(); ++t) {
                    std::vector<float> query;
                    for (const json::value& x : rows[t].as_array())
                        query.push_back(x.to_number<float>());
                    const int visible = 2 * (static_cast<int>(t) + 1);
                    std::vector<float> best(16);
                    IndexBlock block;
                    block.keys = reinterpret_cast<const std::byte*>(transposed.data());
                    block.dim = 8;
                    block.n_rows = 1;
                    block.queries = query.data();
                    block.visible = &visible;
                    block.block_tokens = 8;
                    block.best = best.data();
                    block.stride = 16;
                    table->score_blocks(block);
                    const int own = static_cast<int>(t) / 4;
                    const auto& expected =
                        one.at("block_scores").as_array()[group].as_array()[t].as_array();
                    for (int b = 0; b <= own; ++b)
                        CHECK(best[static_cast<std::size_t>(b)] ==
                              number(expected[static_cast<std::size_t>(b)]));
                    CHECK(select(best, own, msa) ==
                          integers(one.at("blocks").as_array()[group].as_array()[t]));
                }
            }
        }
    }

    TEST_CASE("swigluoai: the values of float64 arithmetic, clamps included") {
        const json::value cases = read_json("swigluoai.json");
        for (const json::value& value : cases.as_array()) {
            const float gate = number(value.at("gate"));
            const float up = number(value.at("up"));
            const double expected = value.at("out").to_number<double>();
            CAPTURE(gate);
            CAPTURE(up);
            for (const CpuKernels* table : available_kernels()) {
                float out = 0;
                table->swigluoai(&gate, &up, 1, 1.702F, 7.0F, &out);
                CHECK(std::fabs(static_cast<double>(out) - expected) <=
                      1e-6 * std::fabs(expected) + 1e-9);
            }
        }
    }
}
