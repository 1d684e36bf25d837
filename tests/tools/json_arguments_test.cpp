#include "tools/json_arguments.h"

#include <doctest/doctest.h>

#include <boost/json/serialize.hpp>

using skein::tools::parse_arguments;

TEST_SUITE("tools/json_arguments") {
    TEST_CASE("an object is parsed with its keys in order") {
        const auto parsed = parse_arguments(R"( {"b": 1, "a": [true, null, "\u00e9"]} )");
        REQUIRE(parsed.object);
        CHECK(boost::json::serialize(*parsed.object) == R"({"b":1,"a":[true,null,"é"]})");
    }

    TEST_CASE("C01: broken texts are refused with the byte where they stop making sense") {
        struct Broken {
            const char* text;
            std::size_t position;
            const char* words;
        };
        const Broken cases[] = {
            {R"({"path": "a",})", 13, "trailing comma"},
            {R"({'path': "a"})", 1, "single quotes"},
            {R"({path: "a"})", 1, "double quotes"},
            {R"({"a": 1,\n"b": 2})", 8, "backslash"},
            {R"({"path": "a")", 12, "ends inside"},
            {R"({"path": "a)", 11, "ends inside"},
            {R"({"a": 1} {"b": 2})", 9, "text after"},
            {R"({"a": 1} // done)", 9, "text after"},
            {R"({"a": /* no */ 1})", 6, "comments"},
            {"{\"a\": \"x\ny\"}", 8, "control character"},
            {R"({"a": True})", 6, ""},
            {R"({"a": NaN})", 6, ""},
            {R"({"a": "\ud800"})", 0, ""},
            {"{\"a\": \"\xff\"}", 7, ""},
        };
        for (const Broken& broken : cases) {
            CAPTURE(broken.text);
            const auto parsed = parse_arguments(broken.text);
            CHECK_FALSE(parsed.object);
            CHECK(parsed.error.find("byte " + std::to_string(parsed.position)) !=
                  std::string::npos);
            CHECK(parsed.error.find(broken.words) != std::string::npos);
            if (broken.position > 0) CHECK(parsed.position == broken.position);
            CAPTURE(parsed.error);
            CHECK(parsed.error.find('\n') == std::string::npos);
        }
    }

    TEST_CASE("C01: empty text and other kinds than objects are refused") {
        for (const char* text : {"", "  \n", "[]", "[{\"path\": \"a\"}]", "null", "12", "\"{}\""}) {
            CAPTURE(text);
            const auto parsed = parse_arguments(text);
            CHECK_FALSE(parsed.object);
            CHECK(parsed.error.find("expected a JSON object") != std::string::npos);
        }
    }

    TEST_CASE("a repeated key is refused at every depth, also when escapes hide it") {
        for (const char* text : {R"({"a": 1, "a": 2})", R"({"x": [{"k": 1, "k": 1}]})",
                                 R"({"ab": 1, "a\u0062": 2})"}) {
            CAPTURE(text);
            const auto parsed = parse_arguments(text);
            CHECK_FALSE(parsed.object);
            CHECK(parsed.error.find("appears twice") != std::string::npos);
        }
        CHECK(parse_arguments(R"({"a": {"a": 1}, "b": {"a": 2}})").object);
    }

    TEST_CASE("nesting beyond 64 is refused and does not crash") {
        const std::string deep =
            "{\"a\":" + std::string(100000, '[') + std::string(100000, ']') + "}";
        const auto parsed = parse_arguments(deep);
        CHECK_FALSE(parsed.object);
        CHECK(parsed.error.find("deeper than 64") != std::string::npos);
        const std::string allowed = "{\"a\":" + std::string(63, '[') + std::string(63, ']') + "}";
        CHECK(parse_arguments(allowed).object);
    }

    TEST_CASE("a number beyond double is refused, one beyond 64 bits stays a double") {
        CHECK(parse_arguments(R"({"a": 1e999})").error.find("too large") != std::string::npos);
        const auto parsed = parse_arguments(R"({"a": 18446744073709551616})");
        REQUIRE(parsed.object);
        CHECK(parsed.object->at("a").is_double());
    }

    TEST_CASE("long values and long keys survive") {
        const std::string key(5000, 'k'), value(300000, 'v');
        const auto parsed = parse_arguments("{\"" + key + "\": \"" + value + "\"}");
        REQUIRE(parsed.object);
        CHECK(parsed.object->at(key).as_string() == value);
    }
}
