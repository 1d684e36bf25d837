#include "model/sampling/philox.h"

#include <doctest/doctest.h>

using namespace skein::model;
using Words = std::array<std::uint32_t, 4>;

TEST_SUITE_BEGIN("model/sampling/philox");

TEST_CASE("philox: the three known answers of the Random123 distribution") {
    CHECK(philox4x32({0, 0, 0, 0}, {0, 0}) ==
          Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
    const std::uint32_t ones = 0xffffffff;
    CHECK(philox4x32({ones, ones, ones, ones}, {ones, ones}) ==
          Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
    CHECK(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
          Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("philox: seed and counter fill the low words") {
    CHECK(philox(0, 0) == philox4x32({0, 0, 0, 0}, {0, 0}));
    CHECK(philox(0x299f31d0a4093822, 0x85a308d3243f6a88) ==
          philox4x32({0x243f6a88, 0x85a308d3, 0, 0}, {0xa4093822, 0x299f31d0}));
}

TEST_SUITE_END();
