// The GGUF parser: what it reads and, mostly, what it refuses. Names in brackets are the classes of
// published faults that the refusals answer.
#include "model/load/gguf.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "model/load/model_file.h"
#include "support/gguf_writer.h"
#include "support/model_error.h"
#include "support/tiny_llama.h"

using namespace skein::model;
using namespace skein::test;

namespace {

GgufIndex parse(const std::string& bytes) {
    return parse_gguf(std::as_bytes(std::span(bytes)), "test.gguf");
}

std::string refusal(const std::string& bytes) {
    return error_text([&] { parse(bytes); });
}

template <typename T>
std::string pod(T value) {
    return {reinterpret_cast<const char*>(&value), sizeof value};
}

const std::vector<float> kOnes(256, 1.0F);

}  // namespace

TEST_SUITE("model/load/gguf") {
    TEST_CASE("every value type is read back") {
        const std::vector<std::string> words{"a", "", "ccc"};
        const std::vector<std::int32_t> numbers{-1, 2};
        const std::string bytes = GgufWriter()
                                      .u8("u8", 255)
                                      .i8("i8", -128)
                                      .u16("u16", 65535)
                                      .i16("i16", -32768)
                                      .u32("u32", 4294967295U)
                                      .i32("i32", -2147483647)
                                      .u64("u64", 1ULL << 63)
                                      .i64("i64", -5)
                                      .f32("f32", 0.5F)
                                      .f64("f64", 1e300)
                                      .boolean("bool", true)
                                      .string("string", "x\ny")
                                      .strings("strings", words)
                                      .i32s("numbers", numbers)
                                      .bytes();
        const GgufIndex index = parse(bytes);
        CHECK(index.version == 3);
        CHECK(index.unsigned_value("u8") == 255U);
        CHECK(index.unsigned_value("u64") == 1ULL << 63);
        CHECK(std::get<std::int64_t>(index.find("i8")->value) == -128);
        CHECK(index.float_value("f32") == 0.5);
        CHECK(index.float_value("f64") == 1e300);
        CHECK(index.bool_value("bool") == true);
        CHECK(index.string_value("string") == "x\ny");
        CHECK(index.strings("strings")->at(2) == "ccc");
        CHECK_FALSE(index.unsigned_value("absent").has_value());
        CHECK(describe_value(*index.find("string")) == "x\\ny");
        CHECK(describe_value(*index.find("strings")) == "3 x string [a, , ccc]");
        CHECK(describe_value(*index.find("numbers")) == "2 x i32 [-1, 2]");
        CHECK(contains(error_text([&] { index.unsigned_value("i64"); }),
                       "key 'i64' must be a non-negative integer, it is i64 (-5)"));
        CHECK(contains(error_text([&] { index.string_value("u8"); }), "must be a string"));
        CHECK(contains(error_text([&] { index.unsigned_values("numbers"); }), "'numbers' must be"));
    }

    TEST_CASE("versions 2 and 3 are read; 1, 4 and big-endian files are named as such") {
        GgufWriter writer;
        writer.version = 2;
        CHECK(parse(writer.bytes()).version == 2);
        writer.version = 1;
        CHECK(contains(refusal(writer.bytes()), "version 1 is not supported"));
        writer.version = 4;
        CHECK(contains(refusal(writer.bytes()), "version 4 is not supported"));
        writer.version = 0x03000000;
        CHECK(contains(refusal(writer.bytes()), "big-endian"));
        CHECK(contains(refusal("GGML----"), "not a GGUF file"));
        CHECK(contains(refusal("GG"), "magic"));
    }

    // [missing weights read as empty]
    TEST_CASE("a shortened file is refused with the first bad tensor, wanted end and real size") {
        const std::string whole = tiny_llama().bytes();
        const std::size_t data = tiny_llama().data_offset();
        const GgufIndex index = parse(whole);
        const std::string last = index.tensors.back().name;

        const std::string one_less = refusal(whole.substr(0, whole.size() - 1));
        CHECK(contains(one_less, fmt::format("tensor '{}' ends at byte {}, the file has {} bytes",
                                             last, whole.size(), whole.size() - 1)));

        const std::size_t nine_tenths = whole.size() / 10 * 9;
        const std::byte* base = index.tensors[0].data - data;
        const auto first_bad =
            std::find_if(index.tensors.begin(), index.tensors.end(), [&](const Tensor& t) {
                return static_cast<std::size_t>(t.data - base) + t.bytes > nine_tenths;
            });
        CHECK(contains(refusal(whole.substr(0, nine_tenths)), first_bad->name));
        CHECK(contains(refusal(whole.substr(0, data)), "tensor 'token_embd.weight' ends at byte"));
    }

    TEST_CASE("no prefix of a file is accepted or crashes the parser") {
        GgufWriter writer;
        add_tiny_tokenizer(writer);
        writer.tensor("a", DType::f32, {8, 2}, std::span(kOnes).first(16));
        const std::string whole = writer.bytes();
        for (std::size_t n = 0; n < whole.size(); ++n) {
            if (refusal(whole.substr(0, n)).empty()) FAIL_CHECK("accepted a prefix of " << n);
        }
        CHECK(refusal(whole).empty());
    }

    // [complete files rejected]
    TEST_CASE("a tensor table in another order than the data loads, with and without end padding") {
        std::vector<float> half(32);
        for (std::size_t i = 0; i < half.size(); ++i) half[i] = static_cast<float>(i);
        std::string q5_k(176, '\x11');
        GgufWriter plain;
        plain.tensor("f", DType::f32, {32}, half)
            .raw_tensor("k", 13, {256}, q5_k)
            .tensor("q", DType::q8_0, {32}, half);
        GgufWriter shuffled = plain;
        shuffled.data_order({1, 2, 0});
        for (const std::size_t padding : {0, 24}) {
            const std::string a = plain.bytes();
            const std::string b = shuffled.bytes() + std::string(padding, '\0');
            const GgufIndex in_order = parse(a);
            const GgufIndex out_of_order = parse(b);
            CHECK(out_of_order.tensors[0].data > out_of_order.tensors[2].data);
            for (std::size_t i = 0; i < 3; ++i) {
                const Tensor& x = in_order.tensors[i];
                const Tensor& y = out_of_order.tensors[i];
                CHECK(x.name == y.name);
                REQUIRE(x.bytes == y.bytes);
                CHECK(std::memcmp(x.data, y.data, x.bytes) == 0);
            }
        }
    }

    // [absurd lengths end in the allocator]
    TEST_CASE("absurd lengths and counts are refused before anything is allocated") {
        const auto header = [](std::uint64_t tensors, std::uint64_t pairs) {
            return std::string("GGUF") + pod(3U) + pod(tensors) + pod(pairs);
        };
        const std::string key = pod(std::uint64_t{1}) + "k";
        CHECK(contains(refusal(header(0, 1) + pod(std::uint64_t{1} << 40) + "padding padding"),
                       "states a length of 1099511627776 bytes"));
        CHECK(contains(refusal(header(0, 1) + key + pod(8U) + pod(std::uint64_t{1} << 62)),
                       "k at byte 37 states a length of"));
        CHECK(
            contains(refusal(header(0, 1) + key + pod(9U) + pod(8U) + pod(std::uint64_t{1} << 33)),
                     "key 'k' states an array of 8589934592 elements of type string"));
        CHECK(contains(refusal(header(0, 1ULL << 32)), "states 4294967296 metadata pairs, limit"));
        CHECK(contains(refusal(header(1ULL << 32, 0)), "states 4294967296 tensors, limit"));
        CHECK(contains(refusal(header(1000, 0)), "which need at least"));
        CHECK(contains(refusal(header(0, 1000)), "which need at least"));
    }

    // [elements skipped by the wrong size]
    TEST_CASE("nested arrays, unknown element types and wrapping counts are refused by key") {
        const auto with = [](const std::string& value) {
            return refusal(
                GgufWriter().raw("odd", 9, value).u32("llama.context_length", 777).bytes());
        };
        const std::string nested =
            pod(9U) + pod(std::uint64_t{1}) + pod(4U) + pod(std::uint64_t{0});
        CHECK(contains(with(nested), "key 'odd' is an array of arrays"));
        CHECK(contains(with(pod(200U) + pod(std::uint64_t{5}) + "12345"),
                       "key 'odd' is an array of unknown element type 200"));
        CHECK(contains(with(pod(10U) + pod(std::uint64_t{1} << 61)),
                       "key 'odd' states an array of 2305843009213693952 elements of type u64"));
        CHECK(contains(refusal(GgufWriter().raw("odd", 77, "").u32("next", 1).bytes()),
                       "key 'odd' has unknown value type 77"));
        CHECK(contains(refusal(GgufWriter().raw("odd", 7, "\x02").u32("next", 1).bytes()),
                       "key 'odd' is a bool with value 2"));
    }

    TEST_CASE("an empty array and a zero-length string are fine") {
        const std::string bytes = GgufWriter()
                                      .string("empty", "")
                                      .strings("none", {})
                                      .u32("llama.context_length", 777)
                                      .bytes();
        CHECK(parse(bytes).unsigned_value("llama.context_length") == 777U);
        CHECK(parse(bytes).strings("none")->empty());
    }

    // [dimension count from the file]
    TEST_CASE("0, 5, 9 and 2^32 - 1 dimensions are refused with the tensor's name") {
        for (const std::uint32_t n : {0U, 5U, 9U, 0xFFFFFFFFU}) {
            CAPTURE(n);
            GgufWriter writer;
            writer.tensor("w", DType::f32, {8}, std::span(kOnes).first(8)).stated_n_dims(n);
            CHECK(contains(refusal(writer.bytes()),
                           fmt::format("tensor 'w' has {} dimensions, 1 to 4", n)));
        }
    }

    TEST_CASE("products and offsets that wrap 64 bits are refused") {
        const auto with = [](std::vector<std::uint64_t> dims, std::uint64_t offset = 0) {
            return refusal(GgufWriter()
                               .raw_tensor("w", 0, std::move(dims), std::string(64, '\0'))
                               .stated_offset(offset)
                               .bytes());
        };
        const std::uint64_t big = 1ULL << 32;
        CHECK(contains(with({big, big, big, 2}), "tensor 'w': its dimensions"));
        CHECK(contains(with({1ULL << 16, 1ULL << 16, 1ULL << 16, 1ULL << 16}), "overflow"));
        CHECK(contains(with({1ULL << 63}), "overflow"));
        CHECK(contains(with({1ULL << 62}), "overflows"));  // elements fit, bytes do not
        CHECK(contains(with({1ULL << 60}), "tensor 'w' ends at byte"));
        CHECK(contains(with({16}, 0xFFFFFFFFFFFFFFE0ULL), "overflows"));
        CHECK(contains(with({16}, 1ULL << 40), "tensor 'w' ends at byte"));
        CHECK(contains(with({8, 0}), "tensor 'w' has an empty dimension"));
    }

    // [alignment without an upper limit]
    TEST_CASE("alignment is a u32 power of two from 8 to 1 MiB; missing means 32") {
        const auto aligned = [](std::uint32_t alignment) {
            GgufWriter writer;
            writer.alignment = alignment == 0 ? 32 : alignment;
            writer.u32("general.alignment", alignment);
            writer.tensor("w", DType::f32, {8}, std::span(kOnes).first(8));
            return writer.bytes();
        };
        for (const std::uint32_t good : {8U, 32U, 64U, 1U << 20}) {
            CHECK(parse(aligned(good)).alignment == good);
        }
        for (const std::uint32_t bad : {1U << 30, 0U, 3U, 4U, 48U}) {
            CHECK(contains(refusal(GgufWriter().u32("general.alignment", bad).bytes()),
                           fmt::format("key 'general.alignment' is {}, it must be", bad)));
        }
        CHECK(parse(GgufWriter().bytes()).alignment == 32);
        CHECK(contains(refusal(GgufWriter().string("general.alignment", "32").bytes()),
                       "key 'general.alignment' must be a u32, it is a string"));
    }

    TEST_CASE("unaligned, overlapping and partial-block tensors are refused by name") {
        GgufWriter unaligned;
        unaligned.tensor("w", DType::f32, {32}, std::span(kOnes).first(32)).stated_offset(4);
        CHECK(contains(refusal(unaligned.bytes()), "tensor 'w' has offset 4, not a multiple"));

        GgufWriter overlap;
        overlap.tensor("a", DType::f32, {32}, std::span(kOnes).first(32));
        overlap.tensor("b", DType::f32, {32}, std::span(kOnes).first(32)).stated_offset(96);
        overlap.tensor("c", DType::f32, {32}, std::span(kOnes).first(32));
        CHECK(contains(refusal(overlap.bytes()), "overlaps tensor"));
        CHECK(contains(refusal(overlap.bytes()), "tensor 'b'"));

        GgufWriter partial;
        partial.raw_tensor("w", 2, {48}, std::string(36, '\0'));
        CHECK(
            contains(refusal(partial.bytes()), "rows of 48 elements, not whole Q4_0 blocks of 32"));
    }

    TEST_CASE("repeated keys and tensors, empty names and unsupported types are refused") {
        CHECK(contains(refusal(GgufWriter().u32("a.b", 1).u32("a.b", 2).bytes()),
                       "key 'a.b' occurs twice"));
        GgufWriter twice;
        twice.tensor("w", DType::f32, {8}, std::span(kOnes).first(8));
        twice.tensor("w", DType::f32, {8}, std::span(kOnes).first(8));
        CHECK(contains(refusal(twice.bytes()), "tensor 'w' occurs twice"));
        CHECK(contains(refusal(GgufWriter().u32("", 1).bytes()), "empty metadata key"));
        GgufWriter unnamed;
        unnamed.tensor("", DType::f32, {8}, std::span(kOnes).first(8));
        CHECK(contains(refusal(unnamed.bytes()), "unnamed tensor"));
        GgufWriter mxfp4;
        mxfp4.raw_tensor("w", 39, {32}, std::string(17, '\0'));
        CHECK(contains(refusal(mxfp4.bytes()),
                       "tensor 'w' has type MXFP4, which this build cannot read"));
        CHECK_FALSE(contains(refusal(mxfp4.bytes()), "truncated"));
    }

    TEST_CASE("names from the file cannot write control bytes into a message") {
        const std::string text = refusal(GgufWriter().raw("\x1b[2Jkey", 99, "").bytes());
        CHECK(contains(text, "?[2Jkey"));
        CHECK_FALSE(contains(text, "\x1b"));
    }

    // [hardening that made loading slow]: no time limit here, but a quadratic scan would be
    // noticed.
    TEST_CASE("a header with 256 000 tokens and 500 000 merges is read completely") {
        std::vector<std::string> tokens(256000);
        for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = fmt::format("t{}", i);
        std::vector<std::string> merges(500000);
        for (std::size_t i = 0; i < merges.size(); ++i) merges[i] = fmt::format("l{} r", i);
        const std::string bytes = GgufWriter()
                                      .strings("tokenizer.ggml.tokens", tokens)
                                      .strings("tokenizer.ggml.merges", merges)
                                      .bytes();
        const GgufIndex index = parse(bytes);
        CHECK(index.strings("tokenizer.ggml.tokens")->back() == "t255999");
        CHECK(index.strings("tokenizer.ggml.merges")->size() == 500000);
    }
}
