#include "model/text/byte_trie.h"

#include <doctest/doctest.h>

using skein::model::ByteTrie;

TEST_SUITE_BEGIN("model/text/byte_trie");

TEST_CASE("byte_trie: finds the longest entry at the start of a text") {
    const ByteTrie trie({{"ab", 1}, {"abcd", 2}, {"b", 3}, {"\xFF", 4}});
    CHECK(trie.longest_prefix("abcde")->value == 2);
    CHECK(trie.longest_prefix("abcde")->length == 4);
    CHECK(trie.longest_prefix("abcx")->value == 1);
    CHECK(trie.longest_prefix("b")->value == 3);
    CHECK(trie.longest_prefix("\xFF\xFF")->value == 4);
    CHECK_FALSE(trie.longest_prefix("a"));
    CHECK_FALSE(trie.longest_prefix(""));
    CHECK_FALSE(ByteTrie().longest_prefix("a"));
}

TEST_CASE("byte_trie: nodes lie in depth-first order with exact subtree sizes") {
    const ByteTrie trie({{"b", 3}, {"ad", 2}, {"ac", 1}, {"ac", 9}, {"", 7}});
    REQUIRE(trie.nodes().size() == 4);
    CHECK(trie.nodes()[0].byte == 'a');
    CHECK(trie.nodes()[0].subtree == 3);
    CHECK(trie.nodes()[0].value == -1);
    CHECK(trie.nodes()[1].value == 1);
    CHECK(trie.nodes()[2].value == 2);
    CHECK(trie.nodes()[3].byte == 'b');
    CHECK(trie.nodes()[3].subtree == 1);
}

TEST_SUITE_END();
