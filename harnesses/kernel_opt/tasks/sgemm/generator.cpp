// Move space of sgemm: a tile of C in registers, B (and A) packed into strips in the order the tile
// reads them, the k axis in blocks that fit a cache. Source of the structure: Goto and van de
// Geijn, "Anatomy of High-Performance Matrix Multiplication", 2008.

#include "harnesses/kernel_opt/tasks/choice_generator.h"
#include "harnesses/kernel_opt/tasks/generators.h"

namespace skein::harnesses {

namespace {

constexpr const char* kTemplate = R"(#include <cstdint>
@INCLUDE@
namespace {

@VECTORS@
constexpr int kRows = @ROWS@;
constexpr int kVectors = @VECTOR_COUNT@;
constexpr int kColumns = kWidth * kVectors;

// out = the product of R rows of A and one strip of kColumns columns of B over `depth` steps.
// Element (r, p) of A is at a[r * a_row + p * a_step]; row p of B at b + p * b_row.
template <int R>
inline void tile(const float* a, std::int64_t a_row, std::int64_t a_step, const float* b,
                 std::int64_t b_row, std::int64_t depth, float* out, std::int64_t out_row,
                 bool add) {
    Vector sums[R][kVectors] = {};
    for (std::int64_t p = 0; p < depth; ++p) {
        Vector row[kVectors];
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; ++v) row[v] = load(b + p * b_row + v * kWidth);
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) {
            const float factor = a[r * a_row + p * a_step];
#pragma GCC unroll 8
            for (int v = 0; v < kVectors; ++v) sums[r][v] += factor * row[v];
        }
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; ++v) {
            float* at = out + r * out_row + v * kWidth;
            store(at, add ? load(at) + sums[r][v] : sums[r][v]);
        }
    }
}
@PADDED_TILE@@PACKERS@
}  // namespace

extern "C" void sgemm(const float* a, const float* b, float* c, std::int64_t m, std::int64_t n,
                      std::int64_t k) {
    const std::int64_t whole_m = m / kRows * kRows, whole_n = n / kColumns * kColumns;
    const std::int64_t block = @BLOCK@;
@BUFFERS@    for (std::int64_t p0 = 0; p0 == 0 || p0 < k; p0 += block) {
        const std::int64_t depth = p0 + block < k ? block : k - p0;
@PACK@        for (@OUTER@) {
            for (@INNER@) {
                tile<kRows>(@A_TILE@, @B_TILE@, depth, c + i * n + j, n, p0 > 0);
            }
        }
        for (std::int64_t i = whole_m; i < m; ++i) {
            for (std::int64_t j = 0; j < whole_n; j += kColumns) {
                tile<1>(a + i * k + p0, k, 1, @B_TILE@, depth, c + i * n + j, n, p0 > 0);
            }
        }
@EDGE@    }
}
)";

constexpr const char* kPaddedTile = R"(
// A tile at the right edge of C: `strip` is padded with zeros, only `columns` results are kept.
template <int R>
inline void padded_tile(const float* a, std::int64_t a_row, std::int64_t a_step, const float* strip,
                        std::int64_t depth, float* c, std::int64_t n, std::int64_t columns,
                        bool add) {
    float out[R * kColumns];
    tile<R>(a, a_row, a_step, strip, kColumns, depth, out, kColumns, false);
    for (int r = 0; r < R; ++r) {
        for (std::int64_t v = 0; v < columns; ++v) {
            c[r * n + v] = out[r * kColumns + v] + (add ? c[r * n + v] : 0.0f);
        }
    }
}
)";

constexpr const char* kEdge = R"(        if (whole_n == n) continue;
        for (std::int64_t p = 0; p < depth; ++p) {
            for (std::int64_t v = 0; v < kColumns; ++v) {
                edge[static_cast<std::size_t>(p * kColumns + v)] =
                    whole_n + v < n ? b[(p0 + p) * n + whole_n + v] : 0.0f;
            }
        }
        for (std::int64_t i = 0; i < whole_m; i += kRows) {
            padded_tile<kRows>(@A_TILE@, edge.data(), depth, c + i * n + whole_n, n, n - whole_n,
                               p0 > 0);
        }
        for (std::int64_t i = whole_m; i < m; ++i) {
            padded_tile<1>(a + i * k + p0, k, 1, edge.data(), depth, c + i * n + whole_n, n,
                           n - whole_n, p0 > 0);
        }
)";

constexpr const char* kPackers = R"(
// Strips of kColumns columns of B: row p of a strip follows row p - 1.
void pack_b(const float* b, std::int64_t n, std::int64_t whole_n, std::int64_t depth, float* out) {
    for (std::int64_t j = 0; j < whole_n; j += kColumns) {
        for (std::int64_t p = 0; p < depth; ++p) {
            for (int v = 0; v < kColumns; ++v) *out++ = b[p * n + j + v];
        }
    }
}
)";

constexpr const char* kPackA = R"(
// Strips of kRows rows of A: the kRows factors of one step are adjacent.
void pack_a(const float* a, std::int64_t k, std::int64_t whole_m, std::int64_t depth, float* out) {
    for (std::int64_t i = 0; i < whole_m; i += kRows) {
        for (std::int64_t p = 0; p < depth; ++p) {
            for (int r = 0; r < kRows; ++r) *out++ = a[(i + r) * k + p];
        }
    }
}
)";

class SgemmGenerator : public ChoiceGenerator {
  public:
    SgemmGenerator()
        : ChoiceGenerator(
              "sgemm",
              {{"tile_rows", "rows of C a register tile holds", {"1", "2", "4", "6"}},
               width_dimension({"1", "8", "16"}),
               {"tile_vectors", "vectors of columns a register tile holds", {"1", "2", "3"}},
               {"packing", "matrices copied into the order of use", {"none", "b", "a_and_b"}},
               {"order", "the outer loop walks down C or across it", {"down", "across"}},
               {"block_k", "steps of the k axis before moving on", {"all", "128"}},
               flags_dimension({"none", "-Ofast", "-funroll-loops"})}) {}

  private:
    bool allowed(const Choices& choices) const override {
        return choices.number("tile_rows") * choices.number("tile_vectors") <= 12;
    }

    std::string body(const Choices& choices) const override {
        const bool pack_b = choices.changed("packing");
        const bool pack_a = choices.text("packing") == "a_and_b";
        const bool down = choices.text("order") == "down";
        const bool edge = choices.changed("vector_width") || choices.changed("tile_vectors");
        const std::string a_tile =
            pack_a ? "packed_a.data() + i * depth, 1, kRows" : "a + i * k + p0, k, 1";
        const std::string rows = "std::int64_t i = 0; i < whole_m; i += kRows";
        const std::string columns = "std::int64_t j = 0; j < whole_n; j += kColumns";
        return fill(
            kTemplate,
            {{"INCLUDE", pack_b || edge ? "#include <vector>\n" : ""},
             {"VECTORS", float_vectors(choices.number("vector_width"))},
             {"ROWS", choices.text("tile_rows")},
             {"VECTOR_COUNT", choices.text("tile_vectors")},
             {"PACKERS", std::string(pack_b ? kPackers : "") + (pack_a ? kPackA : "")},
             {"BLOCK", choices.changed("block_k") ? choices.text("block_k") : "k + 1"},
             {"PADDED_TILE", edge ? kPaddedTile : ""},
             {"EDGE", edge ? fill(kEdge, {{"A_TILE", a_tile}}) : ""},
             {"BUFFERS", buffers(pack_a, pack_b, edge)},
             {"PACK", packing(pack_a, pack_b)},
             {"OUTER", down ? rows : columns},
             {"INNER", down ? columns : rows},
             {"A_TILE", a_tile},
             {"B_TILE", pack_b ? "packed_b.data() + j * depth, kColumns" : "b + p0 * n + j, n"}});
    }

    static std::string buffers(bool pack_a, bool pack_b, bool edge) {
        std::string text;
        const std::string depth = "static_cast<std::size_t>((block < k ? block : k) * ";
        if (pack_a) text += "    std::vector<float> packed_a(" + depth + "whole_m));\n";
        if (pack_b) text += "    std::vector<float> packed_b(" + depth + "whole_n));\n";
        if (edge) text += "    std::vector<float> edge(" + depth + "kColumns));\n";
        return text;
    }

    static std::string packing(bool pack_a, bool pack_b) {
        std::string text;
        if (pack_a) text += "        pack_a(a + p0, k, whole_m, depth, packed_a.data());\n";
        if (pack_b) text += "        pack_b(b + p0 * n, n, whole_n, depth, packed_b.data());\n";
        return text;
    }
};

}  // namespace

const KernelGenerator& sgemm_generator() {
    static const SgemmGenerator generator;
    return generator;
}

}  // namespace skein::harnesses
