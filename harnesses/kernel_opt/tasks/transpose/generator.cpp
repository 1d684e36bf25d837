// Move space of transpose: blocks exchanged in registers, tiles that fit a cache, and a staging
// buffer that turns short writes to far apart rows into long ones.

#include "harnesses/kernel_opt/tasks/choice_generator.h"
#include "harnesses/kernel_opt/tasks/generators.h"

namespace skein::harnesses {

namespace {

constexpr const char* kTemplate = R"(#include <cstdint>
@INCLUDE@
namespace {

@BLOCK@
// Transposes rows r0 to r1 and columns c0 to c1 of x into `out`, whose rows are `stride` apart and
// whose first element is that of (r0, c0).
inline void tile(const float* x, std::int64_t cols, float* out, std::int64_t stride,
                 std::int64_t r0, std::int64_t r1, std::int64_t c0, std::int64_t c1) {
    const std::int64_t whole_r1 = r0 + (r1 - r0) / kBlock * kBlock;
    const std::int64_t whole_c1 = c0 + (c1 - c0) / kBlock * kBlock;
    for (@INNER_FIRST@) {
        for (@INNER_SECOND@) {
@PREFETCH@            block(x + r * cols + c, cols, out + (c - c0) * stride + (r - r0), stride);
        }
    }
    for (std::int64_t r = r0; r < whole_r1; ++r) {
        for (std::int64_t c = whole_c1; c < c1; ++c) {
            out[(c - c0) * stride + (r - r0)] = x[r * cols + c];
        }
    }
    for (std::int64_t r = whole_r1; r < r1; ++r) {
        for (std::int64_t c = c0; c < c1; ++c) {
            out[(c - c0) * stride + (r - r0)] = x[r * cols + c];
        }
    }
}

inline std::int64_t smaller(std::int64_t a, std::int64_t b) {
    return a < b ? a : b;
}

}  // namespace

extern "C" void transpose(const float* x, float* y, std::int64_t rows, std::int64_t cols) {
    if (rows == 0 || cols == 0) return;
    const std::int64_t tile_rows = @TILE_ROWS@, tile_cols = @TILE_COLS@;
    for (@OUTER_FIRST@) {
        for (@OUTER_SECOND@) {
            const std::int64_t r1 = smaller(r0 + tile_rows, rows);
            const std::int64_t c1 = smaller(c0 + tile_cols, cols);
@USE@        }
    }
@DONE@}
)";

constexpr const char* kDirect =
    "            tile(x, cols, y + c0 * rows + r0, rows, r0, r1, c0, c1);\n";

constexpr const char* kStaged =
    R"(            // The tile is put together in the first-level cache and leaves in whole rows.
            alignas(64) float staged[tile_cols * tile_rows];
            tile(x, cols, staged, tile_rows, r0, r1, c0, c1);
            for (std::int64_t c = c0; c < c1; ++c) {
                const float* from = staged + (c - c0) * tile_rows;
                float* to = y + c * rows + r0;
                std::int64_t r = 0;
@COPY_VECTORS@                for (; r < r1 - r0; ++r) to[r] = from[r];
            }
)";

constexpr const char* kStreamCopy = R"(                for (; r + 8 <= r1 - r0; r += 8) {
                    stream(to + r, load(from + r), is_aligned(to));
                }
)";

constexpr const char* kScalarBlock = R"(constexpr int kBlock = 1;

inline void block(const float* x, std::int64_t, float* y, std::int64_t) {
    *y = *x;
}
)";

constexpr const char* kBlock4 = R"(constexpr int kBlock = 4;

@VECTORS@
// 4 x 4 elements: rows in, interleaved in pairs, columns out.
inline void block(const float* x, std::int64_t x_stride, float* y, std::int64_t y_stride) {
    const Vector x0 = load(x), x1 = load(x + x_stride);
    const Vector x2 = load(x + 2 * x_stride), x3 = load(x + 3 * x_stride);
    const Vector a0 = __builtin_shufflevector(x0, x1, 0, 4, 1, 5);
    const Vector a1 = __builtin_shufflevector(x0, x1, 2, 6, 3, 7);
    const Vector a2 = __builtin_shufflevector(x2, x3, 0, 4, 1, 5);
    const Vector a3 = __builtin_shufflevector(x2, x3, 2, 6, 3, 7);
    store(y, __builtin_shufflevector(a0, a2, 0, 1, 4, 5));
    store(y + y_stride, __builtin_shufflevector(a0, a2, 2, 3, 6, 7));
    store(y + 2 * y_stride, __builtin_shufflevector(a1, a3, 0, 1, 4, 5));
    store(y + 3 * y_stride, __builtin_shufflevector(a1, a3, 2, 3, 6, 7));
}
)";

constexpr const char* kBlock8 = R"(constexpr int kBlock = 8;

@VECTORS@@STREAM@
// 8 x 8 elements: rows in, three rounds that interleave singles, pairs and halves, columns out.
inline void block(const float* x, std::int64_t x_stride, float* y, std::int64_t y_stride) {
    Vector v[8], a[8];
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) v[i] = load(x + i * x_stride);
#pragma GCC unroll 8
    for (int i = 0; i < 8; i += 2) {
        a[i] = __builtin_shufflevector(v[i], v[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
        a[i + 1] = __builtin_shufflevector(v[i], v[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
    }
#pragma GCC unroll 8
    for (int i = 0; i < 8; i += 4) {
        v[i] = __builtin_shufflevector(a[i], a[i + 2], 0, 1, 8, 9, 4, 5, 12, 13);
        v[i + 1] = __builtin_shufflevector(a[i], a[i + 2], 2, 3, 10, 11, 6, 7, 14, 15);
        v[i + 2] = __builtin_shufflevector(a[i + 1], a[i + 3], 0, 1, 8, 9, 4, 5, 12, 13);
        v[i + 3] = __builtin_shufflevector(a[i + 1], a[i + 3], 2, 3, 10, 11, 6, 7, 14, 15);
    }
#pragma GCC unroll 8
    for (int i = 0; i < 4; ++i) {
        const Vector low = __builtin_shufflevector(v[i], v[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
        const Vector high = __builtin_shufflevector(v[i], v[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
        @PUT_LOW@;
        @PUT_HIGH@;
    }
}
)";

std::string block(const Choices& choices) {
    if (choices.text("block") == "1") return kScalarBlock;
    if (choices.text("block") == "4") return fill(kBlock4, {{"VECTORS", float_vectors(4)}});
    const bool streamed = choices.changed("store");
    const bool from_block = streamed && !choices.changed("staging");
    const auto put = [from_block](const std::string& to, const char* what) {
        return from_block ? "stream(" + to + ", " + what + ", is_aligned(" + to + "))"
                          : "store(" + to + ", " + what + ")";
    };
    return fill(kBlock8, {{"VECTORS", float_vectors(8)},
                          {"STREAM", streamed ? streaming_store(8) : ""},
                          {"PUT_LOW", put("y + i * y_stride", "low")},
                          {"PUT_HIGH", put("y + (i + 4) * y_stride", "high")}});
}

std::string prefetch(bool by_x) {
    const char* ahead =
        by_x ? "x + (r + i) * cols + c + 32" : "x + (r + 2 * kBlock + i) * cols + c";
    return fill("            for (int i = 0; i < kBlock; ++i) __builtin_prefetch(@AHEAD@);\n",
                {{"AHEAD", ahead}});
}

class TransposeGenerator : public ChoiceGenerator {
  public:
    TransposeGenerator()
        : ChoiceGenerator(
              "transpose",
              {{"block", "square exchanged in registers", {"1", "4", "8"}},
               {"tile_rows", "rows of x a tile covers", {"all", "16", "32", "64"}},
               {"tile_cols", "columns of x a tile covers", {"all", "16", "32", "64"}},
               {"order", "what the inner loops follow: rows of x or rows of y", {"x", "y"}},
               {"staging",
                "write tiles straight to y or through a small buffer",
                {"direct", "staged"}},
               store_dimension(),
               {"prefetch", "fetch the rows of x one block ahead", {"no", "yes"}},
               flags_dimension({"none", "-funroll-loops"})}) {}

  private:
    bool allowed(const Choices& choices) const override {
        const bool tiled = choices.changed("tile_rows") && choices.changed("tile_cols");
        if (choices.changed("staging") && !tiled) return false;
        return !choices.changed("store") || choices.text("block") == "8";
    }

    std::string body(const Choices& choices) const override {
        const bool by_x = choices.text("order") == "x";
        const bool staged = choices.changed("staging");
        const bool streamed = choices.changed("store");
        const std::string r_inner = "std::int64_t r = r0; r < whole_r1; r += kBlock";
        const std::string c_inner = "std::int64_t c = c0; c < whole_c1; c += kBlock";
        const std::string r_outer = "std::int64_t r0 = 0; r0 < rows; r0 += tile_rows";
        const std::string c_outer = "std::int64_t c0 = 0; c0 < cols; c0 += tile_cols";
        return fill(
            kTemplate,
            {{"INCLUDE", streamed ? kStreamIncludes : ""},
             {"BLOCK", block(choices)},
             {"INNER_FIRST", by_x ? r_inner : c_inner},
             {"INNER_SECOND", by_x ? c_inner : r_inner},
             {"OUTER_FIRST", by_x ? r_outer : c_outer},
             {"OUTER_SECOND", by_x ? c_outer : r_outer},
             {"TILE_ROWS", choices.changed("tile_rows") ? choices.text("tile_rows") : "rows"},
             {"TILE_COLS", choices.changed("tile_cols") ? choices.text("tile_cols") : "cols"},
             {"PREFETCH", choices.changed("prefetch") ? prefetch(by_x) : ""},
             {"USE",
              staged ? fill(kStaged, {{"COPY_VECTORS", streamed ? kStreamCopy : ""}}) : kDirect},
             {"DONE", streamed ? "    stores_done();\n" : ""}});
    }
};

}  // namespace

const KernelGenerator& transpose_generator() {
    static const TransposeGenerator generator;
    return generator;
}

}  // namespace skein::harnesses
