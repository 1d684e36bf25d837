#include "model/load/dtype.h"

#include <doctest/doctest.h>

using namespace skein::model;

TEST_SUITE("model/load/dtype") {
    TEST_CASE("types are found by their id in the file format") {
        CHECK(dtype_from_gguf(3) == DType::q4_1);
        CHECK(dtype_from_gguf(30) == DType::bf16);
        CHECK(dtype_info(DType::q6_k).block_elements == 256);
        CHECK(dtype_info(DType::q6_k).block_bytes == 210);
    }

    TEST_CASE("types that cannot be read still have a name") {
        CHECK_FALSE(dtype_from_gguf(39).has_value());
        CHECK(gguf_type_name(39) == "MXFP4");
        CHECK(gguf_type_name(40) == "NVFP4");
        CHECK(gguf_type_name(12) == "Q4_K");
        CHECK(gguf_type_name(4000000000U) == "unknown type 4000000000");
    }
}
