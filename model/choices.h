#pragma once
// What the layers chose while a timeline was evaluated: blocks of sparse attention, experts.
// PUBLIC.
//
// Kept per position as bytes: each list is one byte 0 when it equals the list of the position
// recorded before, else its length and the ids, the first as it is and every other as the distance
// to its neighbour (varints, LEB128; distances of experts are zigzag-coded, their order is the
// order of choice).

#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace skein::model {

/// Receives what the layers chose, while they are evaluated. Positions of one layer come in order.
struct ChoiceSink {
    virtual ~ChoiceSink() = default;
    /// Shapes: blocks [n_kv_heads, top_k], each list ascending, then -1.
    virtual void on_blocks(int layer, int position, int top_k,
                           std::span<const std::int32_t> blocks) = 0;
    /// Shapes: experts [n_used], in the order of choice.
    virtual void on_experts(int layer, int position, std::span<const std::int32_t> experts) = 0;
};

/// The choices of one position.
struct Choices {
    struct Layer {
        int layer = 0;
        std::vector<std::vector<std::int32_t>> blocks;  ///< [n_kv_heads] lists, ascending
        std::vector<std::int32_t> experts;              ///< in the order of choice
    };
    int position = 0;
    std::vector<Layer> layers;  ///< those with sparse attention or experts, ascending
};

/// FNV-1a (64 bits) over the choices of one position, layer by layer.
class ChoiceDigest final : public ChoiceSink {
  public:
    void on_blocks(int layer, int position, int top_k,
                   std::span<const std::int32_t> blocks) override;
    void on_experts(int layer, int position, std::span<const std::int32_t> experts) override;
    void restart() { value_ = kStart; }
    std::uint64_t value() const { return value_; }
    void set(std::uint64_t value) { value_ = value; }

  private:
    static constexpr std::uint64_t kStart = 0xCBF29CE484222325ULL;
    void add(std::int32_t value);
    std::uint64_t value_ = kStart;
};

/// All choices of a timeline. Not thread-safe.
class ChoiceLog final : public ChoiceSink {
  public:
    void on_blocks(int layer, int position, int top_k,
                   std::span<const std::int32_t> blocks) override;
    void on_experts(int layer, int position, std::span<const std::int32_t> experts) override;
    /// Encodes what arrived since the last commit, in the order of positions.
    void commit();
    /// Forgets the positions from `position` on.
    void truncate(int position);

    int size() const { return static_cast<int>(starts_.size()); }  ///< recorded positions
    int position(int index) const { return positions_[static_cast<std::size_t>(index)]; }
    std::size_t bytes() const { return bytes_.size(); }
    /// Decodes everything, in the order of positions.
    std::vector<Choices> read() const;

  private:
    Choices::Layer& pending(int layer, int position);
    void encode(const Choices& choices);

    std::map<int, Choices> pending_;
    std::vector<std::uint8_t> bytes_;
    std::vector<std::size_t> starts_;
    std::vector<int> positions_;
    std::vector<bool> restarts_;  ///< encoded without reference to the position before
    Choices last_;
};

/// Hashes the choices of one position and, when asked to, logs those of all.
class ChoiceRecorder final : public ChoiceSink {
  public:
    ChoiceDigest digest;
    ChoiceLog log;
    bool logging = false;
    int digest_position = 0;

    void on_blocks(int layer, int position, int top_k,
                   std::span<const std::int32_t> blocks) override {
        if (position == digest_position) digest.on_blocks(layer, position, top_k, blocks);
        if (logging) log.on_blocks(layer, position, top_k, blocks);
    }
    void on_experts(int layer, int position, std::span<const std::int32_t> experts) override {
        if (position == digest_position) digest.on_experts(layer, position, experts);
        if (logging) log.on_experts(layer, position, experts);
    }
};

}  // namespace skein::model
