#include "tools/profiler/signature.h"

#include <doctest/doctest.h>

#include <boost/json/parse.hpp>
#include <stdexcept>

using namespace skein::tools;

namespace {

std::string failure_of(std::string_view text) {
    try {
        parse_signature(boost::json::parse(text));
    } catch (const std::runtime_error& error) {
        return error.what();
    }
    return "accepted";
}

std::string failure_of(std::string_view expression, const Sizes& sizes) {
    try {
        evaluate_expression(expression, sizes);
    } catch (const std::runtime_error& error) {
        return error.what();
    }
    return "accepted";
}

bool mentions(const std::string& text, std::string_view part) {
    return text.find(part) != std::string::npos;
}

constexpr const char* kGemv = R"({"entry": "sgemv", "arguments": [
    {"name": "a", "role": "input", "type": "f32", "count": "m * n"},
    {"name": "x", "role": "input", "type": "f32", "count": "n"},
    {"name": "y", "role": "output", "type": "f32", "count": "m"},
    {"name": "m", "role": "size"}, {"name": "n", "role": "size", "type": "i64"}]})";

}  // namespace

TEST_SUITE("tools/profiler/signature") {
    TEST_CASE("expressions follow the usual precedence") {
        const Sizes sizes{{"m", 3}, {"n", 10}, {"block_1", 4}};
        CHECK(evaluate_expression("2 * m * n", sizes) == 60);
        CHECK(evaluate_expression("m + n * 2", sizes) == 23);
        CHECK(evaluate_expression("(m + n) * 2", sizes) == 26);
        CHECK(evaluate_expression("n - m - 1", sizes) == 6);
        CHECK(evaluate_expression("n / m % 2", sizes) == 1);
        CHECK(evaluate_expression("-m + --n", sizes) == 7);
        CHECK(evaluate_expression("ceil_div(n, block_1) * min(m, 2) + max(1, m)", sizes) == 9);
        CHECK(evaluate_expression(" 0 ", sizes) == 0);
    }

    TEST_CASE("ceil_div rounds towards plus infinity for every sign") {
        CHECK(evaluate_expression("ceil_div(7, 2)", {}) == 4);
        CHECK(evaluate_expression("ceil_div(-7, 2)", {}) == -3);
        CHECK(evaluate_expression("ceil_div(7, -2)", {}) == -3);
        CHECK(evaluate_expression("ceil_div(-7, -2)", {}) == 4);
        CHECK(evaluate_expression("ceil_div(8, 2)", {}) == 4);
    }

    TEST_CASE("bad expressions say what is wrong and where") {
        const Sizes sizes{{"n", 1}};
        CHECK(mentions(failure_of("n + k", sizes), "unknown name 'k'"));
        CHECK(mentions(failure_of("n +", sizes), "expected a value"));
        CHECK(mentions(failure_of("", sizes), "expected a value"));
        CHECK(mentions(failure_of("(n", sizes), "expected ')'"));
        CHECK(mentions(failure_of("n n", sizes), "unexpected text"));
        CHECK(mentions(failure_of("1.5 * n", sizes), "unexpected text at column 2"));
        CHECK(mentions(failure_of("pow(n, n)", sizes), "unknown function 'pow'"));
        CHECK(mentions(failure_of("n / (n - 1)", sizes), "division by zero"));
        CHECK(mentions(failure_of("n % 0", sizes), "division by zero"));
        CHECK(mentions(failure_of("9223372036854775807 + n", sizes), "overflow"));
        CHECK(mentions(failure_of("99999999999999999999", sizes), "overflow"));
        CHECK(mentions(failure_of("(-9223372036854775807 - 1) / -1", sizes), "overflow"));
        CHECK(mentions(failure_of(std::string(5000, '('), sizes), "nested too deeply"));
        CHECK(evaluate_expression(std::string(5000, '-') + "n", sizes) == 1);
    }

    TEST_CASE("a signature is read with roles, types and counts") {
        const KernelSignature signature = parse_signature(boost::json::parse(kGemv));
        CHECK(signature.entry == "sgemv");
        REQUIRE(signature.arguments.size() == 5);
        CHECK(signature.arguments[0].count == "m * n");
        CHECK(signature.arguments[2].role == KernelArgument::Role::output);
        CHECK(signature.arguments[4].role == KernelArgument::Role::size);
        CHECK(signature.arguments[4].type == ElementType::i64);
        CHECK(element_bytes(ElementType::u8) == 1);
        CHECK(element_bytes(ElementType::f32) == 4);
        CHECK(element_bytes(ElementType::f64) == 8);
    }

    TEST_CASE("a malformed signature is refused with the path of the fault") {
        CHECK(mentions(failure_of("[]"), "signature: expected an object"));
        CHECK(mentions(failure_of(R"({"entry": "f"})"), "signature.arguments"));
        CHECK(mentions(failure_of(R"({"entry": "f", "arguments": [], "x": 1})"), "signature.x"));
        CHECK(mentions(failure_of(R"({"entry": "a b", "arguments": [1]})"), "not an identifier"));
        const auto with = [](std::string_view argument) {
            return failure_of(R"({"entry": "f", "arguments": [{"name": "n", "role": "size"}, )" +
                              std::string(argument) + "]}");
        };
        CHECK(mentions(with("1"), "signature.arguments[1]: expected an object"));
        CHECK(mentions(with(R"({"name": "x", "role": "in", "type": "f32", "count": "n"})"),
                       "got 'in', expected input, output, inout, size"));
        CHECK(mentions(with(R"({"name": "x", "role": "input", "type": "f16", "count": "n"})"),
                       "got 'f16'"));
        CHECK(mentions(with(R"({"name": "x", "role": "input", "type": "f32"})"),
                       "signature.arguments[1].count: missing"));
        CHECK(mentions(with(R"({"name": "x", "role": "input", "type": "f32", "count": "k"})"),
                       "unknown name 'k'"));
        CHECK(mentions(with(R"({"name": "n", "role": "input", "type": "f32", "count": "n"})"),
                       "declared twice"));
        CHECK(mentions(with(R"({"name": "k", "role": "size", "type": "f32"})"), "always i64"));
        CHECK(mentions(with(R"({"name": "k", "role": "size", "count": "1"})"), "has no count"));
        CHECK(mentions(with(R"({"name": 3, "role": "size"})"), "name: expected a string"));
    }
}
