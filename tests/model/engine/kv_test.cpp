#include <doctest/doctest.h>

#include "model/error.h"
#include "model/kv/block_pool.h"
#include "model/kv/block_table.h"
#include "tests/support/numbers.h"

using namespace skein;
using namespace skein::model;

namespace {

ModelConfig small_config() {
    ModelConfig config;
    config.head_dim = 16;
    config.layers.resize(2);
    config.layers[0].n_kv_heads = 2;
    config.layers[1].n_kv_heads = 1;
    return config;
}

struct Pool {
    explicit Pool(KvType type, std::size_t most_blocks = 100)
        : layout(std::make_shared<KvLayout>(small_config(), type)),
          blocks(BlockPool::make(layout->block_bytes(),
                                 {most_blocks * layout->block_bytes(), {}, 0})) {}
    BlockTable table() const { return {layout, blocks}; }
    std::shared_ptr<const KvLayout> layout;
    std::shared_ptr<BlockPool> blocks;
};

void fill(const Pool& pool, BlockTable& table, int tokens, std::uint64_t seed) {
    test::Numbers numbers(seed);
    table.reserve(tokens);
    for (int t = table.size(); t < tokens; ++t) {
        const auto key = numbers.floats(16);
        const auto value = numbers.floats(16);
        for (int layer = 0; layer < 2; ++layer)
            for (int head = 0; head < pool.layout->n_kv_heads(layer); ++head)
                pool.layout->store(scalar_kernels(), table.writable_block(t), layer, head,
                                   t % kBlockTokens, key.data(), value.data());
    }
    table.advance(tokens);
}

/// Everything stored for one token of the last layer.
std::vector<std::byte> stored(const Pool& pool, const BlockTable& table, int token) {
    const KvLayout& layout = *pool.layout;
    const std::byte* block = table.block(token / kBlockTokens);
    const int row = token % kBlockTokens;
    const auto at = static_cast<std::size_t>(row);
    const std::size_t size = element_bytes(layout.type());
    std::vector<std::byte> bytes;
    const auto add = [&](std::size_t offset, std::size_t count) {
        bytes.insert(bytes.end(), block + offset, block + offset + count);
    };
    for (int d = 0; d < 16; ++d)
        add(layout.keys(1, 0) + static_cast<std::size_t>(strip_at(16, kBlockTokens, d, row)) * size,
            size);
    add(layout.values(1, 0) + at * 16 * size, 16 * size);
    if (has_scales(layout.type())) {
        add(layout.keys(1, 0) + layout.scales_offset() + at * 4, 4);
        add(layout.values(1, 0) + layout.scales_offset() + at * 4, 4);
    }
    return bytes;
}

}  // namespace

TEST_SUITE("model/kv") {
    TEST_CASE("the parts of a block follow one another without overlap") {
        const KvLayout layout(small_config(), KvType::f32);
        CHECK(layout.block_bytes() == 3 * 2 * 16 * 128 * 4);
        CHECK(layout.keys(0, 0) == 0);
        CHECK(layout.values(0, 0) == 16 * 128 * 4);
        CHECK(layout.keys(0, 1) == 2 * 16 * 128 * 4);
        CHECK(layout.keys(1, 0) == 4 * 16 * 128 * 4);
        const KvLayout codes(small_config(), KvType::int16);
        CHECK(codes.block_bytes() == 3 * 2 * (16 * 128 * 2 + 128 * 4));
    }

    TEST_CASE("a fork shares full blocks and copies what the open one holds") {
        for (const KvType type :
             {KvType::f32, KvType::f16, KvType::bf16, KvType::int16, KvType::int8}) {
            const Pool pool(type);
            BlockTable parent = pool.table();
            fill(pool, parent, 300, 1);
            BlockTable child = parent.fork();
            CHECK(child.size() == 300);
            CHECK(child.shared_blocks(parent) == 2);
            for (const int token : {0, 127, 128, 255, 256, 299})
                CHECK(stored(pool, child, token) == stored(pool, parent, token));
            fill(pool, child, 320, 2);
            fill(pool, parent, 320, 3);
            CHECK(stored(pool, child, 310) != stored(pool, parent, 310));
            CHECK(stored(pool, child, 299) == stored(pool, parent, 299));
        }
    }

    TEST_CASE("rewinding into a full block copies it, rewinding in the open one does not") {
        const Pool pool(KvType::int16);
        BlockTable table = pool.table();
        fill(pool, table, 200, 1);
        const BlockTable other = table.fork();
        const auto before = stored(pool, table, 50);
        const std::byte* open = table.block(1);
        table.truncate(150);
        CHECK(table.block(1) == open);
        table.truncate(128);
        CHECK(table.n_blocks() == 1);
        CHECK(table.shared_blocks(other) == 1);
        table.truncate(60);
        CHECK(table.shared_blocks(other) == 0);
        CHECK(stored(pool, table, 50) == before);
        table.truncate(0);
        CHECK(table.bytes() == 0);
    }

    TEST_CASE("blocks return to the pool and the limit is kept") {
        const Pool pool(KvType::f32, 2);
        {
            BlockTable table = pool.table();
            table.reserve(256);
            CHECK(pool.blocks->blocks_in_use() == 2);
            CHECK_THROWS_WITH_AS(table.reserve(257), doctest::Contains("limit"), Error);
            CHECK(table.n_blocks() == 2);
        }
        CHECK(pool.blocks->blocks_in_use() == 0);
        BlockTable again = pool.table();
        again.reserve(256);
        CHECK(pool.blocks->blocks_in_use() == 2);
    }
}
