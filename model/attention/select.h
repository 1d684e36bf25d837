#pragma once
// Which blocks a query attends to. This is the one definition of block selection: prefill, chunked
// prefill, decode and verification all call it. Source: MiniMax Sparse Attention, arXiv 2606.13392;
// the order of ties is ours, upstream leaves it open.

#include <cstdint>
#include <span>

#include "model/config.h"

namespace skein::model {

inline constexpr int kMostSelectedBlocks = 64;

/// Chooses at most msa.top_k of the blocks 0..own for one query of one KV head. Its own block takes
/// one place; then come the other forced blocks (the first `init_blocks`, the last `local_blocks`),
/// then the highest scores. Equal scores: the lower block; NaN ranks after every number.
/// Shapes: scores [own + 1] (that of `own` is not read), evicted [own + 1] or empty: blocks that
/// are no candidates; out [msa.top_k].
/// Writes the chosen blocks ascending, then -1, and returns how many there are.
int select_blocks(std::span<const float> scores, int own, const MsaConfig& msa,
                  std::span<const std::uint8_t> evicted, std::span<std::int32_t> out);

}  // namespace skein::model
