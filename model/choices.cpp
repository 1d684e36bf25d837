#include "model/choices.h"

#include <algorithm>
#include <utility>

#include "model/expect.h"

namespace skein::model {
namespace {

using Bytes = std::vector<std::uint8_t>;
using List = std::vector<std::int32_t>;

void put(Bytes& bytes, std::uint32_t value) {
    for (; value >= 0x80; value >>= 7U) bytes.push_back(static_cast<std::uint8_t>(value | 0x80U));
    bytes.push_back(static_cast<std::uint8_t>(value));
}

std::uint32_t get(const Bytes& bytes, std::size_t& at) {
    std::uint32_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
        const std::uint8_t byte = bytes.at(at++);
        value |= (byte & 0x7FU) << shift;
        if (byte < 0x80) return value;
    }
}

std::uint32_t zigzag(std::int32_t value) {
    return (static_cast<std::uint32_t>(value) << 1U) ^ static_cast<std::uint32_t>(value >> 31);
}

std::int32_t unzigzag(std::uint32_t value) {
    return static_cast<std::int32_t>(value >> 1U) ^ -static_cast<std::int32_t>(value & 1U);
}

void put_list(Bytes& bytes, const List& list, const List* before) {
    if (before != nullptr && *before == list) return put(bytes, 0);
    put(bytes, static_cast<std::uint32_t>(list.size()));
    std::int32_t previous = 0;
    for (const std::int32_t id : list) {
        put(bytes, zigzag(id - previous));
        previous = id;
    }
}

List get_list(const Bytes& bytes, std::size_t& at, const List& before) {
    const std::uint32_t count = get(bytes, at);
    if (count == 0) return before;
    List list(count);
    std::int32_t previous = 0;
    for (std::int32_t& id : list) id = previous += unzigzag(get(bytes, at));
    return list;
}

bool same_shape(const Choices& a, const Choices& b) {
    return std::equal(a.layers.begin(), a.layers.end(), b.layers.begin(), b.layers.end(),
                      [](const Choices::Layer& x, const Choices::Layer& y) {
                          return x.layer == y.layer && x.blocks.size() == y.blocks.size() &&
                                 x.experts.empty() == y.experts.empty();
                      });
}

}  // namespace

void ChoiceDigest::add(std::int32_t value) {
    for (unsigned shift = 0; shift < 32; shift += 8) {
        value_ ^= (static_cast<std::uint32_t>(value) >> shift) & 0xFFU;
        value_ *= 0x100000001B3ULL;
    }
}

void ChoiceDigest::on_blocks(int layer, int, int, std::span<const std::int32_t> blocks) {
    add(layer);
    for (const std::int32_t block : blocks) add(block);
}

void ChoiceDigest::on_experts(int layer, int, std::span<const std::int32_t> experts) {
    add(layer);
    for (const std::int32_t expert : experts) add(expert);
}

Choices::Layer& ChoiceLog::pending(int layer, int position) {
    Choices& choices = pending_[position];
    choices.position = position;
    if (choices.layers.empty() || choices.layers.back().layer != layer)
        choices.layers.push_back({layer, {}, {}});
    return choices.layers.back();
}

void ChoiceLog::on_blocks(int layer, int position, int top_k,
                          std::span<const std::int32_t> blocks) {
    Choices::Layer& to = pending(layer, position);
    for (std::size_t at = 0; at < blocks.size(); at += static_cast<std::size_t>(top_k)) {
        const auto list = blocks.subspan(at, static_cast<std::size_t>(top_k));
        to.blocks.emplace_back(list.begin(), std::find(list.begin(), list.end(), -1));
    }
}

void ChoiceLog::on_experts(int layer, int position, std::span<const std::int32_t> experts) {
    pending(layer, position).experts.assign(experts.begin(), experts.end());
}

void ChoiceLog::commit() {
    for (auto& [position, choices] : pending_) encode(choices);
    pending_.clear();
}

void ChoiceLog::encode(const Choices& choices) {
    const bool restart = starts_.empty() || !same_shape(choices, last_);
    starts_.push_back(bytes_.size());
    positions_.push_back(choices.position);
    restarts_.push_back(restart);
    if (restart) {
        put(bytes_, static_cast<std::uint32_t>(choices.layers.size()));
        for (const Choices::Layer& layer : choices.layers) {
            put(bytes_, static_cast<std::uint32_t>(layer.layer));
            put(bytes_, static_cast<std::uint32_t>(layer.blocks.size()));
            put(bytes_, layer.experts.empty() ? 0 : 1);
        }
    }
    for (std::size_t i = 0; i < choices.layers.size(); ++i) {
        const Choices::Layer& layer = choices.layers[i];
        const Choices::Layer* before = restart ? nullptr : &last_.layers[i];
        for (std::size_t head = 0; head < layer.blocks.size(); ++head)
            put_list(bytes_, layer.blocks[head], before ? &before->blocks[head] : nullptr);
        if (!layer.experts.empty())
            put_list(bytes_, layer.experts, before ? &before->experts : nullptr);
    }
    last_ = choices;
}

void ChoiceLog::truncate(int position) {
    pending_.clear();
    std::size_t kept = positions_.size();
    while (kept > 0 && positions_[kept - 1] >= position) --kept;
    if (kept == positions_.size()) return;
    bytes_.resize(starts_[kept]);
    starts_.resize(kept);
    positions_.resize(kept);
    restarts_.resize(kept);
    last_ = {};  // an empty shape: the next position starts anew
}

std::vector<Choices> ChoiceLog::read() const {
    std::vector<Choices> all;
    Choices now;
    for (std::size_t i = 0; i < starts_.size(); ++i) {
        std::size_t at = starts_[i];
        if (restarts_[i]) {
            now.layers.assign(get(bytes_, at), {});
            for (Choices::Layer& layer : now.layers) {
                layer.layer = static_cast<int>(get(bytes_, at));
                layer.blocks.resize(get(bytes_, at));
                layer.experts.resize(get(bytes_, at));
            }
        }
        now.position = positions_[i];
        for (Choices::Layer& layer : now.layers) {
            for (List& list : layer.blocks) list = get_list(bytes_, at, list);
            if (!layer.experts.empty()) layer.experts = get_list(bytes_, at, layer.experts);
        }
        all.push_back(now);
    }
    return all;
}

}  // namespace skein::model
