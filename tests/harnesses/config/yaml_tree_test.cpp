#include "harnesses/config/yaml_tree.h"

#include <doctest/doctest.h>

using namespace skein::harnesses;

namespace {

// The message of a refusal, or "" when the text was read.
std::string refusal(const std::string& text) {
    try {
        parse_yaml(text, "f.yaml");
    } catch (const ConfigError& error) {
        return error.what();
    }
    return "";
}

bool contains(const std::string& text, std::string_view part) {
    return text.find(part) != text.npos;
}

std::string value(const std::string& text, std::string_view key = "a") {
    const YamlNode root = parse_yaml(text, "f.yaml");
    const YamlNode* node = root.find(key);
    return node ? node->text : "absent";
}

}  // namespace

TEST_SUITE("harnesses/config/yaml_tree") {
    TEST_CASE("every scalar style is read, exactly as written") {
        CHECK(value("a: plain text # note\n") == "plain text");
        CHECK(value("a: 'it''s'\n") == "it's");
        CHECK(value("a: \"q\\\"\\u00e9\\n\"\n") == "q\"é\n");
        CHECK(value("a: >\n  x\n  y\n") == "x y\n");
        CHECK(value("a: >-\n  x\n") == "x");
        CHECK(value("a: |+\n  x\n\nb: 1\n") == "x\n\n");
        for (const char* word :
             {"no", "on", "y", "7e10", "1.20", "0123", "12:30:45", "0x1F", "1_000"}) {
            CHECK(value(std::string("a: ") + word) == word);
        }
        CHECK(value("no: x", "no") == "x");
    }

    TEST_CASE("positions count from one") {
        const YamlNode root = parse_yaml("a:\n  - b\n", "f.yaml");
        CHECK(root.find("a")->items.front().line == 2);
        CHECK(root.find("a")->items.front().column == 5);
    }

    TEST_CASE("H03: a repeated key is refused with both lines, also in quotes and nested") {
        CHECK(refusal("a: 1\nb: 2\n\"a\": 3\n") ==
              "f.yaml:3:1: the key 'a' appears twice, first in line 1");
        CHECK(contains(refusal("agents:\n  x: {}\n  x: {}\n"), "first in line 2"));
        CHECK(contains(refusal("t:\n  - {type: shell,\n     type: files}\n"), "f.yaml:3:6"));
    }

    TEST_CASE("H04: merge keys take what the mapping itself lacks, in order") {
        const std::string bases = "b: &b {x: 1, y: 2}\nc: &c {y: 3, z: 4}\n";
        const YamlNode one = parse_yaml(bases + "a: {<<: *b, y: 5}\n", "f.yaml");
        CHECK(one.find("a")->find("x")->text == "1");
        CHECK(one.find("a")->find("y")->text == "5");
        const YamlNode two = parse_yaml(bases + "a:\n  <<: [*b, *c]\n", "f.yaml");
        CHECK(two.find("a")->find("y")->text == "2");
        CHECK(two.find("a")->find("z")->text == "4");
        CHECK_FALSE(two.find("a")->find("<<"));
        CHECK(contains(refusal("a: {<<: 3}\n"), "merge key"));
    }

    TEST_CASE("H05: aliases of themselves and expanding aliases are refused quickly") {
        CHECK(contains(refusal("a: &x [1, *x]\n"), "refers to the value that contains it"));
        std::string doubling = "a0: &a0 [x, x]\n";
        for (int i = 1; i < 20; ++i) {
            const std::string before = std::to_string(i - 1), now = std::to_string(i);
            doubling += "a" + now + ": &a" + now + " [*a" + before + ", *a" + before + "]\n";
        }
        CHECK(contains(refusal(doubling), "aliases are written out"));
        std::string many = "x: &x 1\nl: [";
        for (int i = 0; i < 100000; ++i) many += "*x,";
        CHECK(contains(refusal(many + "]\n"), "aliases are written out"));
        CHECK(contains(refusal("a: *absent\n"), "f.yaml:1:4"));
    }

    TEST_CASE("H06: deep nesting is a depth error in every style") {
        CHECK(contains(refusal(std::string(100000, '[')), "nested deeper than 64"));
        CHECK(contains(refusal(std::string(50000, '{')), "nested deeper than 64"));
        std::string blocks, dashes;
        for (std::size_t i = 0; i < 1000; ++i) blocks += std::string(i, ' ') + "a:\n";
        for (int i = 0; i < 50000; ++i) dashes += "- ";
        CHECK(contains(refusal(blocks), "nested deeper than 64"));
        CHECK(contains(refusal(dashes), "nested deeper than 64"));
        CHECK(value("a: |\n  " + std::string(100000, '[') + "\n").size() == 100001);
    }

    TEST_CASE("H14: tabs inside block text stay, tabs as indentation are named, CRLF reads as LF") {
        CHECK(value("a: |\n  all:\n  \tcc x.c\n") == "all:\n\tcc x.c\n");
        const std::string tabbed = refusal("agents:\n\troot: {}\n");
        CHECK(contains(tabbed, "f.yaml:2:"));
        CHECK(contains(tabbed, "line 2 is indented with a tab"));
        CHECK(contains(refusal("a:\n  b: 1\n\tc: 2\n"), "line 3 is indented with a tab"));
        CHECK(value("b: 1\r\na: |\r\n  x\r\n  y\r\n") == "x\ny\n");
    }

    TEST_CASE("B10: a leading byte-order mark is dropped, one in the middle stays") {
        CHECK(value("\xEF\xBB\xBF"
                    "a: x\xEF\xBB\xBFy\n") == "x\xEF\xBB\xBFy");
    }

    TEST_CASE("what is no single YAML document of text is refused with a position") {
        CHECK(contains(refusal(""), "empty"));
        CHECK(contains(refusal("# only a note\n"), "empty"));
        CHECK(contains(refusal("a: 1\n---\nb: 2\n"), "f.yaml:3:1: a second document"));
        CHECK(contains(refusal("a: 1\nb: [1\n"), "not valid YAML"));
        CHECK(contains(refusal("a: 1\n b: 2\n"), "f.yaml:2:3"));
        CHECK(contains(refusal("a: \xff\n"), "not UTF-8"));
        CHECK(contains(refusal(std::string("a: 1\nb\0: 2\n", 11)), "f.yaml:2:2: a NUL byte"));
        CHECK(contains(refusal("a: !!int 3\n"), "tags"));
        CHECK(contains(refusal("null: 3\n"), "put it in quotes"));
        CHECK(contains(refusal("[a]: 3\n"), "a key must be text"));
        CHECK(contains(refusal(std::string(2 << 20, ' ')), "at most 1048576"));
    }

    TEST_CASE("what is printed reads back the same") {
        const std::string text =
            "a:\n  - x: \"no\"\n    \"y\":\n      - 1\n      - \"\\t\\x01\\\"\"\n  - []\n  - "
            "{}\n\"null\": 3\n";
        CHECK(print_yaml(parse_yaml(text, "f.yaml")) == text);
    }
}
