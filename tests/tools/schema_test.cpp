#include "tools/schema.h"

#include <doctest/doctest.h>

#include <boost/json/parse.hpp>

namespace json = boost::json;
using skein::tools::check_schema;
using skein::tools::validate;

namespace {

json::object object(const char* text) {
    return json::parse(text).as_object();
}

const json::object& file_schema() {
    static const json::object schema = object(R"({
        "type": "object",
        "properties": {
            "path": {"type": "string", "minLength": 1, "maxLength": 5},
            "count": {"type": "integer", "minimum": 1, "maximum": 10},
            "share": {"type": "number", "minimum": 0.5},
            "all": {"type": "boolean"},
            "mode": {"enum": ["read", "write"]},
            "tags": {"type": "array", "minItems": 1, "maxItems": 2, "items": {"type": "string"}},
            "kind": {"const": "file"}},
        "required": ["path"],
        "additionalProperties": false})");
    return schema;
}

std::string problem(const char* text) {
    return validate(json::parse(text), file_schema()).value_or("");
}

bool contains(const std::string& text, const char* part) {
    return text.find(part) != text.npos;
}

}  // namespace

TEST_SUITE("tools/schema") {
    TEST_CASE("what the schema asks for passes") {
        CHECK(problem(R"({"path": "a"})") == "");
        CHECK(problem(R"({"path": "äöüßé", "count": 10, "share": 1, "all": false, "mode": "write",
                          "tags": ["x", "y"], "kind": "file"})") == "");
    }

    TEST_CASE("C09: nothing is coerced, and the message says what stood there") {
        for (const char* value : {"\"false\"", "\"0\"", "0", "null", "[true]"}) {
            const std::string text = std::string("{\"path\": \"a\", \"all\": ") + value + "}";
            CAPTURE(text);
            CHECK(contains(problem(text.c_str()), "/all: expected boolean, got "));
        }
        for (const char* value : {"\"12\"", "12.0", "1e1", "null", "true"}) {
            const std::string text = std::string("{\"path\": \"a\", \"count\": ") + value + "}";
            CAPTURE(text);
            CHECK(contains(problem(text.c_str()), "/count: expected integer, got "));
        }
        CHECK(contains(problem(R"({"path": "a", "count": 12.0})"), "no fraction"));
        CHECK(problem(R"({"path": ["a"]})") == "/path: expected string, got array [\"a\"]");
    }

    TEST_CASE("bounds name both sides") {
        CHECK(problem(R"({"path": ""})") == "/path: expected at least 1 characters, got 0");
        CHECK(problem(R"({"path": "abcdef"})") == "/path: expected at most 5 characters, got 6");
        CHECK(problem(R"({"path": "a", "count": 0})") ==
              "/count: expected a number >= 1, got integer 0");
        CHECK(contains(problem(R"({"path": "a", "count": 11})"), "<= 10"));
        CHECK(contains(problem(R"({"path": "a", "share": 0.25})"), ">= 0.5"));
        CHECK(contains(problem(R"({"path": "a", "tags": []})"),
                       "/tags: expected at least 1 items, got 0"));
        CHECK(contains(problem(R"({"path": "a", "tags": ["x", 2]})"),
                       "/tags/1: expected string, got integer 2"));
    }

    TEST_CASE("choices suggest the near one") {
        CHECK(contains(problem(R"({"path": "a", "mode": "raed"})"), "did you mean \"read\"?"));
        CHECK(contains(problem(R"({"path": "a", "mode": 3})"),
                       "one of [\"read\",\"write\"], got integer 3"));
        CHECK(contains(problem(R"({"path": "a", "kind": "dir"})"),
                       "/kind: expected \"file\", got string \"dir\""));
    }

    TEST_CASE("a misspelt property is named with the one that was meant") {
        const std::string text = problem(R"({"paht": "a"})");
        CHECK(contains(text, "arguments: expected one of the properties path, count"));
        CHECK(contains(text, "did you mean \"path\"?"));
        CHECK(contains(problem(R"({"file_path": "a"})"), "did you mean \"path\"?"));
        CHECK(contains(problem(R"({"count": 2})"), "required property \"path\", got only count"));
        CHECK(contains(problem("{}"), "required property \"path\", got an empty object"));
        CHECK(contains(problem("[]"), "arguments: expected object, got array"));
    }

    TEST_CASE("extra properties pass where the schema does not forbid them") {
        CHECK_FALSE(validate(json::parse(R"({"x": 1})"), object(R"({"type": "object"})")));
        CHECK(contains(
            validate(
                json::parse(R"({"pth": 1})"),
                object(R"({"type": "object", "properties": {"path": {}}, "required": ["path"]})"))
                .value_or(""),
            "did you mean it by \"pth\"?"));
    }

    TEST_CASE("the place is a JSON pointer with its escapes") {
        const auto schema = object(R"({"properties": {"a/b~c": {"type": "null"}}})");
        CHECK(validate(json::parse(R"({"a/b~c": 1})"), schema) ==
              "/a~1b~0c: expected null, got integer 1");
    }

    TEST_CASE("schemas that cannot be enforced are refused with the keyword and its place") {
        CHECK_FALSE(check_schema(file_schema()));
        const auto refusal = [](const char* text) {
            return check_schema(object(text)).value_or("");
        };
        CHECK(contains(refusal(R"({"type": "object", "anyOf": []})"), "\"anyOf\""));
        CHECK(contains(refusal(R"({"properties": {"a": {"items": {"pattern": "x"}}}})"),
                       "/properties/a/items: "));
        for (const char* bad :
             {R"({"type": ["string", "null"]})", R"({"type": "text"})", R"({"properties": []})",
              R"({"properties": {"a": true}})", R"({"required": ["a"]})", R"({"required": "a"})",
              R"({"enum": []})", R"({"enum": "a"})", R"({"minLength": -1})", R"({"maxItems": 1.5})",
              R"({"minimum": "0"})", R"({"additionalProperties": {}})", R"({"items": []})",
              R"({"description": 1})", R"({"properties": {"a": {}}, "required": [1]})"}) {
            CAPTURE(bad);
            CHECK(refusal(bad) != "");
        }
    }
}
