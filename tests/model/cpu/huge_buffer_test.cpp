#include "model/cpu/huge_buffer.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <utility>

#include "model/error.h"

using skein::model::Error;
using skein::model::HugeBuffer;

TEST_SUITE("model/cpu/huge_buffer") {
    TEST_CASE("memory is zero, writable to its end, and aligned to a huge page when it is large") {
        for (const std::size_t bytes : {std::size_t{1}, std::size_t{4097}, std::size_t{5} << 20U}) {
            CAPTURE(bytes);
            const HugeBuffer buffer(bytes, "a test");
            REQUIRE(buffer.bytes() >= bytes);
            CHECK(buffer.data()[0] == std::byte{0});
            buffer.data()[bytes - 1] = std::byte{7};
            CHECK(buffer.data()[bytes - 1] == std::byte{7});
            if (bytes >= std::size_t{2} << 20U)
                CHECK(reinterpret_cast<std::uintptr_t>(buffer.data()) % (2U << 20U) == 0);
        }
    }

    TEST_CASE("nothing is mapped for no bytes, and a moved buffer leaves nothing behind") {
        CHECK(HugeBuffer(0, "a test").data() == nullptr);
        HugeBuffer first(100, "a test");
        std::byte* data = first.data();
        const HugeBuffer second = std::move(first);
        CHECK(second.data() == data);
        CHECK(first.data() == nullptr);
    }

    TEST_CASE("memory that the system refuses is an error that names the purpose") {
        CHECK_THROWS_WITH_AS(HugeBuffer(std::size_t{1} << 60U, "a test"),
                             doctest::Contains("a test"), Error);
    }
}
