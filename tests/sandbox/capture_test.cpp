#include "sandbox/capture.h"

#include <doctest/doctest.h>

#include <random>

namespace skein::sandbox {
namespace {

TEST_SUITE_BEGIN("sandbox/capture");

TEST_CASE("what fits is kept whole in the head") {
    Capture capture(4, 4);
    capture.add("abc");
    capture.add("defgh");
    const CapturedOutput output = std::move(capture).take();
    CHECK(output.head == "abcdefgh");
    CHECK(output.tail.empty());
    CHECK(output.dropped == 0);
    CHECK(output.text() == "abcdefgh");
}

TEST_CASE("the middle is dropped and counted") {
    Capture capture(2, 3);
    for (const char* piece : {"ab", "cde", "f", "ghij"}) capture.add(piece);
    const CapturedOutput output = std::move(capture).take();
    CHECK(output.head == "ab");
    CHECK(output.tail == "hij");
    CHECK(output.total_bytes == 10);
    CHECK(output.dropped == 5);
    CHECK(output.text().find("5 bytes of 10 dropped") != std::string::npos);
}

TEST_CASE("any split of any stream gives the same head and tail") {
    std::mt19937 random(7);
    for (int round = 0; round < 2000; ++round) {
        CAPTURE(round);
        const std::size_t keep_head = random() % 9, keep_tail = random() % 9;
        std::string all;
        Capture capture(keep_head, keep_tail);
        for (int pieces = static_cast<int>(random() % 8); pieces > 0; --pieces) {
            std::string piece(random() % 12, ' ');
            for (char& c : piece) c = static_cast<char>('a' + random() % 26);
            capture.add(piece);
            all += piece;
        }
        const CapturedOutput output = std::move(capture).take();
        CHECK(output.total_bytes == all.size());
        if (all.size() <= keep_head + keep_tail) {
            CHECK(output.head == all);
        } else {
            CHECK(output.head == all.substr(0, keep_head));
            CHECK(output.tail == all.substr(all.size() - keep_tail));
            CHECK(output.dropped == all.size() - keep_head - keep_tail);
        }
    }
}

TEST_SUITE_END();

}  // namespace
}  // namespace skein::sandbox
