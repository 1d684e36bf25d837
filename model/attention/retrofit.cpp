#include "model/attention/retrofit.h"

#include <algorithm>
#include <array>
#include <vector>

#include "model/attention/select.h"
#include "model/attention/selected.h"
#include "model/cpu/math.h"

namespace skein::model {
namespace {

using Head = std::array<float, kLargestHeadDim>;

void turn_by(const CpuKernels& kernels, RopeKind rope, int rope_dim, const float* cosines,
             const float* sines, float* head) {
    const auto turn =
        rope == RopeKind::interleaved ? kernels.rope_interleaved : kernels.rope_half_split;
    turn(head, cosines, sines, rope_dim);
}

class FixedDistance final : public FarQueries {
  public:
    FixedDistance(const AttentionCall& call, const RetrofitCall& retrofit)
        : call_(call), retrofit_(retrofit) {}

    bool is_far(int position, int begin) const override {
        const int own = position / kBlockTokens;
        return own >= retrofit_.msa->top_k &&
               begin / kBlockTokens + retrofit_.msa->local_blocks <= own;
    }
    void turn(const CpuKernels& kernels, int token, int head, int begin,
              float* out) const override {
        turn_row(kernels, token, head, 1 + begin / kBlockTokens, out);
    }
    /// Turned by the angles of one row of the table.
    void turn_row(const CpuKernels& kernels, int token, int head, int row, float* out) const {
        const int head_dim = call_.head_dim();
        std::copy_n(retrofit_.queries + token * call_.token_stride() +
                        static_cast<std::ptrdiff_t>(head) * head_dim,
                    head_dim, out);
        const std::ptrdiff_t angles = static_cast<std::ptrdiff_t>(row) * (retrofit_.rope_dim / 2);
        turn_by(kernels, retrofit_.rope, retrofit_.rope_dim, retrofit_.far_cosines + angles,
                retrofit_.far_sines + angles, out);
    }

  private:
    const AttentionCall& call_;
    const RetrofitCall& retrofit_;
};

/// No score of the query against any key within the bounds is larger. Sum as in rmsnorm.
float upper_bound(const float* query, const float* smallest, const float* largest, int n) {
    std::array<float, 8> lanes{};
    for (int i = 0; i < n; i += 8)
        for (int lane = 0; lane < 8; ++lane) {
            const int d = i + lane;
            lanes[static_cast<std::size_t>(lane)] +=
                max_f32(query[d] * smallest[d], query[d] * largest[d]);
        }
    return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) +
           ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
}

void select_for(const AttentionCall& call, const RetrofitCall& retrofit,
                const FixedDistance& distance, const CpuKernels& kernels, int token, int kv_head,
                std::vector<float>& scores) {
    const int own = (call.start + token) / kBlockTokens;
    const auto top_k = static_cast<std::size_t>(retrofit.msa->top_k);
    scores.assign(static_cast<std::size_t>(own) + 1, kMinusInfinity);
    if (own >= retrofit.msa->top_k) {
        const int head_dim = call.head_dim();
        const KvLayout& layout = call.table->layout();
        for (int i = 0; i < call.group(); ++i) {
            Head query;
            distance.turn_row(kernels, token, kv_head * call.group() + i, 0, query.data());
            for (int block = 0; block < own; ++block) {
                const auto* bounds = reinterpret_cast<const float*>(
                    call.table->block(block) + layout.bounds(call.layer, kv_head));
                float& score = scores[static_cast<std::size_t>(block)];
                score =
                    max_f32(score, upper_bound(query.data(), bounds, bounds + head_dim, head_dim));
            }
        }
    }
    const std::span<const std::uint8_t> evicted =
        call.table->any_evicted() ? call.table->evicted_pages() : std::span<const std::uint8_t>{};
    const std::size_t list =
        static_cast<std::size_t>(token) * static_cast<std::size_t>(call.n_kv_heads()) +
        static_cast<std::size_t>(kv_head);
    select_blocks(scores, own, *retrofit.msa, evicted, {retrofit.selected + list * top_k, top_k});
}

}  // namespace

int far_distance(const MsaConfig& msa) {
    return (msa.local_blocks + 1) * kBlockTokens;
}

void seal_block(const KvLayout& layout, const CpuKernels& kernels, std::byte* block, int layer,
                RopeKind rope, int rope_dim, const float* cosines, const float* sines) {
    const int head_dim = layout.head_dim();
    std::vector<float> backwards(sines, sines + rope_dim / 2);
    for (float& sine : backwards) sine = -sine;
    std::vector<float> keys(static_cast<std::size_t>(head_dim) * kBlockTokens);
    for (int head = 0; head < layout.n_kv_heads(layer); ++head) {
        const std::byte* stored = block + layout.keys(layer, head);
        const auto* scales = reinterpret_cast<const float*>(stored + layout.scales_offset());
        kernels.widen(layout.type(), stored, head_dim * kBlockTokens, keys.data());
        auto* smallest = reinterpret_cast<float*>(block + layout.bounds(layer, head));
        float* largest = smallest + head_dim;
        for (int token = 0; token < kBlockTokens; ++token) {
            Head key;
            for (int d = 0; d < head_dim; ++d) {
                float& channel = key[static_cast<std::size_t>(d)];
                channel =
                    keys[static_cast<std::size_t>(strip_at(head_dim, kBlockTokens, d, token))];
                if (has_scales(layout.type())) channel *= scales[token];
            }
            turn_by(kernels, rope, rope_dim, cosines, backwards.data(), key.data());
            for (int d = 0; d < head_dim; ++d) {
                const float channel = key[static_cast<std::size_t>(d)];
                smallest[d] = token == 0 ? channel : min_f32(channel, smallest[d]);
                largest[d] = token == 0 ? channel : max_f32(channel, largest[d]);
            }
        }
    }
}

void attend_retrofit(const AttentionCall& call, const RetrofitCall& retrofit,
                     const CpuKernels& kernels, ThreadPool& pool, AttentionScratch& scratch) {
    const FixedDistance distance(call, retrofit);
    const int kv_heads = call.n_kv_heads();
    pool.parallel_for(call.n_tokens * kv_heads, 1, [&](int begin, int end) {
        std::vector<float> scores;
        for (int item = begin; item < end; ++item)
            select_for(call, retrofit, distance, kernels, item / kv_heads, item % kv_heads, scores);
    });
    SelectedBlocks blocks;
    blocks.lists = retrofit.selected;
    blocks.top_k = retrofit.msa->top_k;
    blocks.far = &distance;
    attend_selected(call, blocks, kernels, pool, scratch);
}

}  // namespace skein::model
