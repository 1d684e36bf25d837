#include "support/tiny_llama.h"

#include <cmath>
#include <random>
#include <vector>

#include "model/load/byte_alphabet.h"

namespace skein::test {
namespace {

/// Uniform values scaled so that activations stay near 1. Not std distributions, whose results
/// differ between standard libraries.
std::vector<float> random_values(std::mt19937_64& random, std::size_t n, double scale) {
    std::vector<float> values(n);
    for (float& v : values) {
        const double unit = static_cast<double>(random() >> 11) * 0x1p-53;
        v = static_cast<float>((2.0 * unit - 1.0) * scale);
    }
    return values;
}

}  // namespace

void add_tiny_config(GgufWriter& writer, const TinyShape& shape) {
    const std::string& a = shape.architecture;
    writer.string("general.architecture", a)
        .string("general.name", "tiny " + a)
        .u32(a + ".block_count", shape.n_layers)
        .u32(a + ".context_length", shape.max_context)
        .u32(a + ".embedding_length", shape.dim)
        .u32(a + ".feed_forward_length", shape.hidden_dim)
        .u32(a + ".attention.head_count", shape.n_heads)
        .u32(a + ".attention.head_count_kv", shape.n_kv_heads)
        .f32(a + ".attention.layer_norm_rms_epsilon", 1e-5F)
        .f32(a + ".rope.freq_base", 10000.0F);
}

void add_tiny_tokenizer(GgufWriter& writer) {
    std::vector<std::string> tokens;
    std::vector<std::int32_t> types;
    for (int b = 0; b < 256; ++b) {
        const char byte = static_cast<char>(b);
        tokens.push_back(model::to_byte_alphabet({&byte, 1}));
    }
    const std::vector<std::string> merges{"h e", "l l", "he ll"};
    tokens.insert(tokens.end(), {"he", "ll", "hell"});
    types.assign(tokens.size(), 1);
    tokens.insert(tokens.end(), {"<|im_start|>", "<|im_end|>", "<|endoftext|>"});
    types.insert(types.end(), 3, 3);
    writer.string("tokenizer.ggml.model", "gpt2")
        .string("tokenizer.ggml.pre", "smollm")
        .strings("tokenizer.ggml.tokens", tokens)
        .i32s("tokenizer.ggml.token_type", types)
        .strings("tokenizer.ggml.merges", merges)
        .u32("tokenizer.ggml.bos_token_id", kTinyStart)
        .u32("tokenizer.ggml.eos_token_id", kTinyEnd);
}

void add_tiny_tensors(GgufWriter& writer, const TinyShape& shape) {
    std::mt19937_64 random(shape.seed);
    const std::uint64_t dim = shape.dim;
    const std::uint64_t head_dim = dim / shape.n_heads;
    const std::uint64_t kv = shape.n_kv_heads * head_dim;
    const std::uint64_t hidden = shape.hidden_dim;
    const auto matrix = [&](const std::string& name, std::uint64_t rows, std::uint64_t length) {
        const double scale = std::sqrt(3.0 / static_cast<double>(length));
        writer.tensor(name, shape.matrix_type, {length, rows},
                      random_values(random, static_cast<std::size_t>(rows * length), scale));
    };
    const auto vector = [&](const std::string& name, std::uint64_t length) {
        std::vector<float> values = random_values(random, static_cast<std::size_t>(length), 0.1);
        for (float& v : values) v += 1.0F;
        writer.tensor(name, model::DType::f32, {length}, values);
    };
    matrix("token_embd.weight", kTinyVocabulary, dim);
    vector("output_norm.weight", dim);
    if (!shape.tied_head) matrix("output.weight", kTinyVocabulary, dim);
    for (std::uint32_t i = 0; i < shape.n_layers; ++i) {
        const std::string layer = "blk." + std::to_string(i) + ".";
        vector(layer + "attn_norm.weight", dim);
        matrix(layer + "attn_q.weight", dim, dim);
        matrix(layer + "attn_k.weight", kv, dim);
        matrix(layer + "attn_v.weight", kv, dim);
        matrix(layer + "attn_output.weight", dim, dim);
        if (shape.architecture == "qwen2") {
            vector(layer + "attn_q.bias", dim);
            vector(layer + "attn_k.bias", kv);
            vector(layer + "attn_v.bias", kv);
        }
        if (shape.architecture == "qwen3") {
            vector(layer + "attn_q_norm.weight", head_dim);
            vector(layer + "attn_k_norm.weight", head_dim);
        }
        vector(layer + "ffn_norm.weight", dim);
        matrix(layer + "ffn_gate.weight", hidden, dim);
        matrix(layer + "ffn_up.weight", hidden, dim);
        matrix(layer + "ffn_down.weight", dim, hidden);
    }
}

GgufWriter tiny_llama(const TinyShape& shape) {
    GgufWriter writer;
    add_tiny_config(writer, shape);
    add_tiny_tokenizer(writer);
    add_tiny_tensors(writer, shape);
    return writer;
}

}  // namespace skein::test
