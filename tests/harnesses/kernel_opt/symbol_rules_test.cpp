#include "harnesses/kernel_opt/symbol_rules.h"

#include <doctest/doctest.h>

using namespace skein::harnesses;

namespace {

std::optional<Rejection> check(std::vector<std::string> imports, std::vector<std::string> defines,
                               std::vector<std::string> needed) {
    skein::tools::ElfSymbols symbols;
    symbols.imports = std::move(imports);
    symbols.defines = std::move(defines);
    symbols.needed = std::move(needed);
    return check_symbols(symbols, {"dlopen", "cblas_*", "pthread_create", "_exit"});
}

}  // namespace

TEST_SUITE("harnesses/kernel_opt/symbol_rules") {
    TEST_CASE("symbol_rules: accepts the language's own libraries and mathematics") {
        CHECK(
            !check({"expf", "memcpy", "__stack_chk_fail"}, {"sgemv"}, {"libm.so.6", "libc.so.6"}));
    }

    TEST_CASE("symbol_rules: refuses forbidden imports, by name and by prefix") {
        for (const char* name : {"dlopen", "cblas_sgemv"}) {
            CAPTURE(name);
            const auto rejected = check({name}, {}, {});
            REQUIRE(rejected);
            CHECK(rejected->status == VerdictStatus::forbidden);
            CHECK(rejected->message.find(name) != std::string::npos);
        }
        CHECK(!check({"dlopen_other"}, {}, {}));
    }

    TEST_CASE("symbol_rules: refuses other libraries") {
        CHECK(check({}, {}, {"libopenblas.so.0"})->status == VerdictStatus::forbidden);
    }

    TEST_CASE("symbol_rules: names threads, exits and clocks as the hack they are") {
        CHECK(check({"pthread_create"}, {}, {})->hack == "background_thread");
        CHECK(check({"_exit"}, {}, {})->hack == "early_exit");
        CHECK(check({}, {"clock_gettime"}, {})->hack == "fake_clock");
    }

    TEST_CASE("symbol_rules: refuses code that runs while loading through indirect functions") {
        skein::tools::ElfSymbols symbols;
        symbols.has_indirect_functions = true;
        CHECK(check_symbols(symbols, {}));
    }
}
