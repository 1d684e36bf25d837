// Move space of histogram: several tables, so that equal neighbours do not wait for each other, and
// wide loads.

#include "harnesses/kernel_opt/tasks/choice_generator.h"
#include "harnesses/kernel_opt/tasks/generators.h"

namespace skein::harnesses {

namespace {

constexpr const char* kTemplate = R"(#include <cstdint>
#include <cstring>

namespace {

constexpr int kTables = @TABLES@;
constexpr int kUnroll = @UNROLL@;
typedef @WORD@ Word;
constexpr int kStep = kUnroll * static_cast<int>(sizeof(Word));

inline Word load(const std::uint8_t* p) {
    Word word;
    std::memcpy(&word, p, sizeof word);
    return word;
}

// The counter of `value` in one of the tables, which are @LAYOUT_COMMENT@.
inline std::uint32_t& counter(std::uint32_t* tables, int table, std::uint8_t value) {
    return tables[@INDEX@];
}

}  // namespace

extern "C" void histogram(const std::uint8_t* @RESTRICT@data, std::uint32_t* @RESTRICT@counts,
                          std::int64_t n) {
@DECLARE@    std::memset(tables, 0, 256 * kTables * sizeof(std::uint32_t));
    std::int64_t i = 0;
    for (; i + kStep <= n; i += kStep) {
        Word words[kUnroll];
#pragma GCC unroll 8
        for (int u = 0; u < kUnroll; ++u) words[u] = load(data + i + u * sizeof(Word));
#pragma GCC unroll 8
        for (int u = 0; u < kUnroll; ++u) {
            Word word = words[u];
@RUNS@#pragma GCC unroll 8
            for (int b = 0; b < static_cast<int>(sizeof(Word)); ++b) {
                const int table = (u * static_cast<int>(sizeof(Word)) + b) % kTables;
                ++counter(tables, table, static_cast<std::uint8_t>(word));
                word = static_cast<Word>(word >> (sizeof(Word) > 1 ? 8 : 0));
            }
        }
    }
    for (; i < n; ++i) ++counter(tables, 0, data[i]);
@MERGE@}
)";

constexpr const char* kMerge = R"(    for (int value = 0; value < 256; ++value) {
        std::uint32_t count = 0;
        for (int t = 0; t < kTables; ++t) {
            count += counter(tables, t, static_cast<std::uint8_t>(value));
        }
        counts[value] = count;
    }
)";

// A word of equal bytes is its own rotation by one byte.
constexpr const char* kRuns =
    R"(            if (word == static_cast<Word>(word >> 8 | word << (8 * sizeof(Word) - 8))) {
                counter(tables, 0, static_cast<std::uint8_t>(word)) += sizeof(Word);
                continue;
            }
)";

class HistogramGenerator : public ChoiceGenerator {
  public:
    HistogramGenerator()
        : ChoiceGenerator(
              "histogram",
              {{"tables", "sets of counters, added up at the end", {"1", "2", "4", "8"}},
               {"load", "bytes one load reads", {"1", "4", "8"}},
               {"unroll", "loads a step makes", {"1", "2", "4"}},
               {"layout",
                "tables one after another or counter by counter",
                {"separate", "interleaved"}},
               {"runs", "count a word of equal bytes at once", {"no", "yes"}},
               restrict_dimension(),
               flags_dimension({"none", "-funroll-loops", "-O2"})}) {}

  private:
    bool allowed(const Choices& choices) const override {
        const int tables = choices.number("tables"), load = choices.number("load");
        if (tables > load * choices.number("unroll")) return false;
        if (tables == 1 && choices.changed("layout")) return false;
        return load > 1 || !choices.changed("runs");
    }

    std::string body(const Choices& choices) const override {
        const int load = choices.number("load");
        const bool interleaved = choices.changed("layout");
        const bool local = choices.changed("tables");
        return fill(kTemplate,
                    {{"TABLES", choices.text("tables")},
                     {"UNROLL", choices.text("unroll")},
                     {"WORD", load == 8   ? "std::uint64_t"
                              : load == 4 ? "std::uint32_t"
                                          : "std::uint8_t"},
                     {"LAYOUT_COMMENT", interleaved ? "interleaved" : "one after another"},
                     {"INDEX", interleaved ? "value * kTables + table" : "table * 256 + value"},
                     {"RESTRICT", choices.changed("restrict") ? "__restrict " : ""},
                     {"DECLARE", local ? "    std::uint32_t tables[256 * kTables];\n"
                                       : "    std::uint32_t* tables = counts;\n"},
                     {"RUNS", choices.changed("runs") ? kRuns : ""},
                     {"MERGE", local ? kMerge : ""}});
    }
};

}  // namespace

const KernelGenerator& histogram_generator() {
    static const HistogramGenerator generator;
    return generator;
}

}  // namespace skein::harnesses
