#include "agent/limits.h"

#include <doctest/doctest.h>

#include <set>

#include "agent/budget.h"

using namespace skein::agent;
using namespace std::chrono_literals;

TEST_SUITE("agent/limits") {
    TEST_CASE("limits: every exit status has a name of its own") {
        std::set<std::string_view> names;
        for (int i = 0; i <= static_cast<int>(ExitStatus::internal_error); ++i) {
            names.insert(to_string(static_cast<ExitStatus>(i)));
        }
        CHECK(names.size() == static_cast<std::size_t>(ExitStatus::internal_error) + 1);
        CHECK_FALSE(names.contains("unknown"));
    }
}

TEST_SUITE("agent/budget") {
    TEST_CASE("budget: without limits only the window counts") {
        RunLimits limits;
        Spent spent{.usage = {}, .context_tokens = 900, .context_window = 1000};
        spent.usage.turns = 100000;
        CHECK_FALSE(exhausted(limits, spent));
        CHECK(reply_allowance(limits, spent) == 100);
        spent.context_tokens = 968;
        CHECK_FALSE(exhausted(limits, spent));
        spent.context_tokens = 969;
        CHECK(exhausted(limits, spent) == ExitStatus::context_full);
        spent.context_tokens = 5000;
        CHECK(exhausted(limits, spent) == ExitStatus::context_full);
    }

    TEST_CASE("budget: each limit stops at its value, not before") {
        Spent spent{.usage = {}, .context_tokens = 10, .context_window = 1 << 20};
        RunLimits limits;
        limits.turns = 3;
        spent.usage.turns = 2;
        CHECK_FALSE(exhausted(limits, spent));
        spent.usage.turns = 3;
        CHECK(exhausted(limits, spent) == ExitStatus::turn_limit);
        limits = {};
        limits.output_tokens = 50;
        spent.usage.sampled_tokens = 49;
        CHECK_FALSE(exhausted(limits, spent));
        CHECK(reply_allowance(limits, spent) == 1);
        spent.usage.sampled_tokens = 50;
        CHECK(exhausted(limits, spent) == ExitStatus::output_token_limit);
        limits = {};
        limits.tokens = 11;
        CHECK_FALSE(exhausted(limits, spent));
        CHECK(reply_allowance(limits, spent) == 1);
        limits.tokens = 10;
        CHECK(exhausted(limits, spent) == ExitStatus::token_limit);
        limits = {};
        limits.wall_time = 5ms;
        spent.elapsed = 4ms;
        CHECK_FALSE(exhausted(limits, spent));
        spent.elapsed = 5ms;
        CHECK(exhausted(limits, spent) == ExitStatus::time_limit);
    }

    TEST_CASE("budget: a reply gets the smallest of all allowances") {
        RunLimits limits;
        limits.reply_tokens = 64;
        Spent spent{.usage = {}, .context_tokens = 100, .context_window = 1000};
        CHECK(reply_allowance(limits, spent) == 64);
        limits.reply_tokens = 0;
        CHECK(reply_allowance(limits, spent) == 900);
        limits.tokens = 130;
        CHECK(reply_allowance(limits, spent) == 30);
    }

    TEST_CASE("budget: the model is told every ten turns, and always when little is left") {
        RunLimits limits;
        limits.turns = 100;
        Spent spent{.usage = {}, .context_tokens = 10, .context_window = 100000};
        spent.usage.turns = 9;
        CHECK(budget_notice(limits, spent).empty());
        spent.usage.turns = 10;
        CHECK(budget_notice(limits, spent) ==
              "\n[left: 90 of 100 turns, 99990 of 100000 context tokens]");
        spent.usage.turns = 80;
        CHECK_FALSE(budget_notice(limits, spent).empty());
        spent.usage.turns = 81;
        CHECK(budget_notice(limits, spent).find("19 of 100 turns") != std::string::npos);
    }

    TEST_CASE("budget: time never enters the prompt, so that a replay sees the same one") {
        RunLimits limits;
        limits.wall_time = 100s;
        Spent spent{.usage = {}, .context_tokens = 10, .context_window = 100000, .elapsed = 79s};
        CHECK(budget_notice(limits, spent).empty());
        spent.elapsed = 81s;
        CHECK(budget_notice(limits, spent).empty());
    }

    TEST_CASE("budget: without any limit nothing is said until the window runs short") {
        RunLimits limits;
        Spent spent{.usage = {}, .context_tokens = 100, .context_window = 1000};
        spent.usage.turns = 10;
        CHECK(budget_notice(limits, spent).empty());
        spent.context_tokens = 900;
        CHECK(budget_notice(limits, spent) == "\n[left: 100 of 1000 context tokens]");
    }
}
