#include "model/attention/select.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "model/expect.h"

namespace skein::model {
namespace {

struct Candidate {
    bool forced;
    bool number;
    float score;
    std::int32_t block;
};

/// Whether `a` goes before `b`, given that its block has the higher id.
bool before(const Candidate& a, const Candidate& b) {
    if (a.forced != b.forced) return a.forced;
    if (a.number != b.number) return a.number;
    return a.number && a.score > b.score;
}

/// The best candidates so far, best first.
struct Best {
    std::array<Candidate, kMostSelectedBlocks> list;
    int n = 0;
    int room = 0;

    void offer(const Candidate& candidate) {
        if (n == room && (room == 0 || !before(candidate, list[at(n - 1)]))) return;
        int place = n < room ? n++ : n - 1;
        for (; place > 0 && before(candidate, list[at(place - 1)]); --place)
            list[at(place)] = list[at(place - 1)];
        list[at(place)] = candidate;
    }
    static std::size_t at(int i) { return static_cast<std::size_t>(i); }
};

}  // namespace

int select_blocks(std::span<const float> scores, int own, const MsaConfig& msa,
                  std::span<const std::uint8_t> evicted, std::span<std::int32_t> out) {
    expect(msa.top_k >= 1 && msa.top_k <= kMostSelectedBlocks, "a supported number of blocks");
    Best best;
    best.room = msa.top_k - 1;
    for (std::int32_t b = 0; b < own; ++b) {
        const auto i = static_cast<std::size_t>(b);
        if (!evicted.empty() && evicted[i] != 0) continue;
        const bool forced = b < msa.init_blocks || b > own - msa.local_blocks;
        best.offer({forced, !std::isnan(scores[i]), scores[i], b});
    }
    for (int i = 0; i < best.n; ++i)
        out[static_cast<std::size_t>(i)] = best.list[static_cast<std::size_t>(i)].block;
    std::sort(out.begin(), out.begin() + best.n);
    out[static_cast<std::size_t>(best.n)] = own;
    std::fill(out.begin() + best.n + 1, out.end(), -1);
    return best.n + 1;
}

}  // namespace skein::model
