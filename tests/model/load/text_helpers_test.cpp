// The small helpers of this folder: cursor, printable text, byte alphabet, JSON.
#include <doctest/doctest.h>

#include <string>

#include "model/expect.h"
#include "model/load/byte_alphabet.h"
#include "model/load/byte_cursor.h"
#include "model/load/json_text.h"
#include "model/load/printable.h"
#include "support/model_error.h"

using namespace skein::model;
using namespace skein::test;

TEST_SUITE("model/load/byte_cursor") {
    TEST_CASE("a cursor reads to the last byte and not past it") {
        const std::string bytes("\x02\x00\x00\x00\x00\x00\x00\x00hi!", 11);
        ByteCursor in(std::as_bytes(std::span(bytes)), "file");
        CHECK(in.read_string(100, "name") == "hi");
        CHECK(in.read<char>("mark") == '!');
        CHECK(in.remaining() == 0);
        CHECK(contains(error_text([&] { in.read<char>("more"); }),
                       "more at byte 11 needs 1 bytes, 0 remain"));
    }

    TEST_CASE("a length is compared with its limit and with what remains") {
        const std::string bytes("\x05\x00\x00\x00\x00\x00\x00\x00hi", 10);
        const auto read = [&](std::uint64_t limit) {
            return error_text([&] {
                ByteCursor(std::as_bytes(std::span(bytes)), "file").read_string(limit, "name");
            });
        };
        CHECK(contains(read(4), "states a length of 5 bytes, limit 4"));
        CHECK(contains(read(9), "needs 5 bytes, 2 remain"));
    }
}

TEST_SUITE("model/load/printable") {
    TEST_CASE("control bytes cannot reach a terminal and long text is cut") {
        CHECK(printable("a\x1b[31mb\n") == "a?[31mb\\n");
        CHECK(printable("abcdef", 3) == "abc... (6 bytes)");
    }
}

TEST_SUITE("model/load/byte_alphabet") {
    TEST_CASE("every byte has a character and comes back") {
        std::string all;
        for (int b = 0; b < 256; ++b) all += static_cast<char>(b);
        CHECK(undo_byte_alphabet(to_byte_alphabet(all)) == all);
        CHECK(to_byte_alphabet(" a\n") == "\u0120a\u010a");
    }

    TEST_CASE("text outside the alphabet is not bytes") {
        CHECK_FALSE(undo_byte_alphabet(" ").has_value());
        CHECK_FALSE(undo_byte_alphabet("\u3042").has_value());
        CHECK_FALSE(undo_byte_alphabet("\xc4").has_value());
        CHECK_FALSE(undo_byte_alphabet("\xc1\x81").has_value());
        CHECK_FALSE(undo_byte_alphabet("\xc4(").has_value());
        CHECK(undo_byte_alphabet("") == "");
    }
}

TEST_SUITE("model/load/json_text") {
    TEST_CASE("good JSON is read, padding after it is fine") {
        const auto value = parse_json("{\"a\": 1, \"b\": {\"a\": 2}}  \n ", "file");
        CHECK(JsonObject(value, "file").unsigned_value("a") == 1U);
        CHECK_FALSE(JsonObject(value, "file").unsigned_value("c").has_value());
    }

    TEST_CASE("a repeated key is refused by name, also when it is escaped or deep") {
        CHECK(contains(error_text([] { parse_json(R"({"a":1,"a":2})", "f"); }),
                       "key 'a' occurs twice"));
        CHECK(contains(error_text([] { parse_json(R"([{"x":{"ab":1,"\u0061b":2}}])", "f"); }),
                       "key 'ab' occurs twice"));
    }

    TEST_CASE("broken, deep and trailing text is refused") {
        CHECK(contains(error_text([] { parse_json("{\"a\":", "f"); }), "f: not valid JSON"));
        CHECK(contains(error_text([] { parse_json("", "f"); }), "f: not valid JSON"));
        CHECK(
            contains(error_text([] { parse_json("{} {}", "f"); }), "more text follows at byte 3"));
        CHECK(contains(error_text([] { parse_json("\"\xff\"", "f"); }), "not valid JSON"));
        CHECK(contains(error_text([] { parse_json(std::string(100000, '['), "f"); }),
                       "not valid JSON"));
    }

    TEST_CASE("a value of another type is refused with its key") {
        const auto value = parse_json(R"({"a": -1, "b": "x", "c": 1.5})", "f");
        const JsonObject object(value, "f");
        CHECK(contains(error_text([&] { object.unsigned_value("a"); }), "'a' must be"));
        CHECK(contains(error_text([&] { object.boolean("b"); }), "'b' must be true or false"));
        CHECK(contains(error_text([&] { object.string("c"); }), "'c' must be a string, it is 1.5"));
        CHECK(contains(error_text([&] { JsonObject(parse_json("[]", "f"), "f"); }),
                       "expected a JSON object"));
    }
}

TEST_SUITE("model/expect") {
    TEST_CASE("a true condition passes") {
        expect(true, "never printed");
    }
}
