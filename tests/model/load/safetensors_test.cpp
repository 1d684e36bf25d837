// The safetensors parser: what it reads and what it refuses.
#include "model/load/safetensors.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>

#include "support/model_error.h"

using namespace skein::model;
using namespace skein::test;

namespace {

std::string with_length(std::uint64_t length, std::string_view rest) {
    std::string out(reinterpret_cast<const char*>(&length), sizeof length);
    return out.append(rest);
}

std::string file(std::string_view header, std::size_t data_bytes) {
    return with_length(header.size(), std::string(header) + std::string(data_bytes, '\1'));
}

SafetensorsIndex parse(const std::string& bytes) {
    return parse_safetensors(std::as_bytes(std::span(bytes)), "test.safetensors");
}

std::string refusal(const std::string& bytes) {
    return error_text([&] { parse(bytes); });
}

/// One tensor 'w' with these fields over `data_bytes` bytes of data.
std::string one(const char* dtype, const char* shape, const char* offsets, std::size_t data_bytes) {
    return refusal(file(fmt::format(R"({{"w":{{"dtype":"{}","shape":{},"data_offsets":{}}}}})",
                                    dtype, shape, offsets),
                        data_bytes));
}

}  // namespace

TEST_SUITE("model/load/safetensors") {
    TEST_CASE("tensors, shapes, metadata and padding are read") {
        const SafetensorsIndex index =
            parse(file(R"({"__metadata__":{"format":"pt"},)"
                       R"("b":{"dtype":"BF16","shape":[2,3],"data_offsets":[4,16]},)"
                       R"("a":{"dtype":"F32","shape":[],"data_offsets":[0,4]}}    )",
                       16));
        REQUIRE(index.entries.size() == 2);
        CHECK(index.entries[0].name == "a");
        CHECK(index.entries[0].shape.empty());
        CHECK(index.entries[1].shape == std::vector<std::uint64_t>{2, 3});
        CHECK(index.entries[1].data.size() == 12);
        CHECK(index.metadata[0].second == "pt");
        CHECK(refusal(file("{}", 0)).empty());
    }

    // [header limits that are not in the message]
    TEST_CASE("impossible header lengths are refused with the limit and the number") {
        CHECK(contains(refusal(with_length(1ULL << 63, "{}")),
                       "header length is 9223372036854775808 bytes, limit 100000000"));
        CHECK(contains(refusal(with_length(11, "{}")),
                       "header length is 11 bytes, the file has 2 after it"));
        CHECK(contains(refusal(with_length(7, "{}")), "header length is 7 bytes, the file has 2"));
        CHECK(contains(refusal(with_length(0, "{}")), "the header (0 bytes) does not start with"));
        CHECK(contains(refusal("1234567"), "header length at byte 0 needs 8 bytes, 7 remain"));
        CHECK(contains(refusal(file("  {}", 0)), "does not start with '{'"));
        CHECK(contains(refusal(file("{]", 0)), "not valid JSON"));
    }

    TEST_CASE("a header of 200 000 small tensors is read") {
        std::string header = "{";
        for (int i = 0; i < 200000; ++i) {
            header += fmt::format(R"({}"t{}":{{"dtype":"F16","shape":[1],"data_offsets":[{},{}]}})",
                                  i == 0 ? "" : ",", i, 2 * i, 2 * i + 2);
        }
        CHECK(parse(file(header + "}", 400000)).entries.size() == 200000);
    }

    // [byte ranges not compared with shapes]
    TEST_CASE("ranges that contradict shape, order or file are refused with wanted and given") {
        CHECK(one("F32", "[2]", "[0,8]", 8).empty());
        CHECK(contains(one("F32", "[4]", "[0,8]", 8),
                       "tensor 'w': shape [4] of type F32 needs 16 bytes, data_offsets [0, 8] "
                       "give 8"));
        CHECK(contains(one("F32", "[2]", "[8,0]", 8), "tensor 'w': data_offsets must be"));
        CHECK(contains(one("F32", "[2]", "[0,8]", 4),
                       "tensor 'w' ends at byte 8 of the data, the "
                       "file has 4"));
        CHECK(contains(one("F32", "[2]", "[4,12]", 12),
                       "tensor 'w' begins at byte 4 of the data, expected 0: there is a hole"));
        CHECK(contains(one("F32", "[2]", "[0,8]", 9), "1 bytes of data belong to no tensor"));
        CHECK(contains(one("F32", "[4294967296,4294967296]", "[0,8]", 8), "overflows"));
        CHECK(contains(one("F32", "[-1]", "[0,8]", 8), "'shape' is [-1]"));
        CHECK(contains(one("F32", "[2]", "[0,18446744073709551615]", 8), "'data_offsets' is"));
        CHECK(contains(one("F32", "[2]", "[0]", 8), "data_offsets must be"));
        CHECK(contains(one("F32", "2", "[0,8]", 8), "tensor 'w' has no array 'shape'"));
        CHECK(contains(refusal(file(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                                    R"("b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})",
                                    12)),
                       "tensor 'b' begins at byte 4 of the data, expected 8: there is an overlap"));
    }

    TEST_CASE("an unknown type is reported as that and not as damage") {
        for (const char* dtype : {"F4", "F8_E8M0"}) {
            const std::string text = one(dtype, "[2]", "[0,8]", 8);
            CHECK(contains(text, fmt::format("tensor 'w' has type {}, which this build", dtype)));
            CHECK_FALSE(contains(text, "truncated"));
        }
    }

    TEST_CASE("repeated names and wrong kinds of values are refused") {
        CHECK(contains(refusal(file(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                                    R"("a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
                                    4)),
                       "key 'a' occurs twice"));
        CHECK(contains(refusal(file(R"({"a":1})", 0)), "tensor 'a': expected a JSON object"));
        CHECK(contains(refusal(file(R"({"a":{}})", 0)), "tensor 'a' has no 'dtype'"));
        CHECK(contains(refusal(file(R"({"__metadata__":{"a":1}})", 0)), "not a string"));
        CHECK(contains(refusal(file(R"({"__metadata__":[]})", 0)), "not an object"));
    }
}
