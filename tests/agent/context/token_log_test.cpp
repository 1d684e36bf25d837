#include "agent/context/token_log.h"

#include <doctest/doctest.h>

using namespace skein::agent;

TEST_SUITE("agent/context/token_log") {
    TEST_CASE("token_log: keeps order, borders and origins") {
        TokenLog log;
        log.append(Origin::glue, Tokens{1});
        log.append(Origin::user, Tokens{5, 6, 7});
        log.append(Origin::user, Tokens{8});
        REQUIRE(log.size() == 5);
        CHECK(Tokens(log.tokens().begin(), log.tokens().end()) == Tokens{1, 5, 6, 7, 8});
        REQUIRE(log.segments().size() == 3);
        CHECK(log.segments()[1].origin == Origin::user);
        CHECK(log.segments()[1].begin == 1);
        CHECK(log.segments()[1].end == 4);
        CHECK(log.segments()[2].begin == 4);
    }

    TEST_CASE("token_log: appending nothing leaves no empty segment") {
        TokenLog log;
        log.append(Origin::tool, {});
        CHECK(log.segments().empty());
        CHECK(log.size() == 0);
    }

    TEST_CASE("token_log: every origin has a name of its own") {
        CHECK(to_string(Origin::system) == "system");
        CHECK(to_string(Origin::user) == "user");
        CHECK(to_string(Origin::tool) == "tool");
        CHECK(to_string(Origin::sampled) == "sampled");
        CHECK(to_string(Origin::forced) == "forced");
        CHECK(to_string(Origin::glue) == "glue");
    }
}
