// `tokenizer.ggml.*` metadata as a StatedVocabulary.  Source: GGUF specification, tokenizer keys.
#include <fmt/format.h>

#include "model/error.h"
#include "model/load/gguf_model.h"
#include "model/load/printable.h"
#include "model/load/stated_vocabulary.h"

namespace skein::model {
namespace {

struct PreTokenizer {
    std::string_view gguf;  ///< `tokenizer.ggml.pre`
    std::string_view name;  ///< as in Vocabulary::pre_tokenizer
    bool ignore_merges;
    bool add_bos;  ///< when the file does not say
};
constexpr PreTokenizer kPreTokenizers[] = {
    {"smollm", "smollm", false, false},     {"gpt-2", "gpt2", false, false},
    {"qwen2", "qwen2", false, false},       {"deepseek-r1-qwen", "qwen2", false, false},
    {"llama-bpe", "llama-bpe", true, true}, {"llama3", "llama-bpe", true, true},
    {"llama-v3", "llama-bpe", true, true},  {"gpt-4o", "o200k", false, false},
};

/// A name this table does not know is passed on; the tokenizer refuses it by that name.
PreTokenizer pre_tokenizer(std::string_view gguf_name) {
    for (const PreTokenizer& row : kPreTokenizers) {
        if (row.gguf == gguf_name) return row;
    }
    return {gguf_name, gguf_name, false, false};
}

/// Splits "left right". The parts are in the byte alphabet, which writes a space as another
/// character, so the first space after the first character is the separator.
std::pair<std::string_view, std::string_view> split_merge(std::string_view merge, std::size_t i,
                                                          const std::string& where) {
    const std::size_t space = merge.find(' ', 1);
    if (space == std::string_view::npos || space + 1 == merge.size()) {
        throw Error(
            fmt::format("{}: tokenizer: merge {} is '{}', expected two parts separated by "
                        "a space",
                        where, i, printable(merge)));
    }
    return {merge.substr(0, space), merge.substr(space + 1)};
}

}  // namespace

Vocabulary gguf_vocabulary(const GgufIndex& index) {
    const auto model = index.string_value("tokenizer.ggml.model");
    if (!model) {
        throw Error(
            fmt::format("{}: the file holds no tokenizer ('tokenizer.ggml.model' is "
                        "missing)",
                        index.where));
    }
    if (*model != "gpt2") {
        throw Error(
            fmt::format("{}: tokenizer model '{}' is not supported, only 'gpt2' (byte-level "
                        "BPE) is",
                        index.where, printable(*model)));
    }
    const auto required = [&](const char* key) {
        auto strings = index.strings(key);
        if (!strings)
            throw Error(fmt::format("{}: required key '{}' is missing", index.where, key));
        return std::move(*strings);
    };
    const auto special = [&](const char* key) {
        return StatedTokenId{key, index.unsigned_value(key)};
    };

    StatedVocabulary stated;
    stated.where = index.where;
    const auto pre = index.string_value("tokenizer.ggml.pre").value_or("default");
    const PreTokenizer row = pre_tokenizer(pre);
    stated.pre_tokenizer = row.name;
    stated.ignore_merges = row.ignore_merges;
    stated.add_bos = index.bool_value("tokenizer.ggml.add_bos_token").value_or(row.add_bos);
    stated.tokens = required("tokenizer.ggml.tokens");
    stated.types = index.unsigned_values("tokenizer.ggml.token_type");
    const std::vector<std::string_view> merges = required("tokenizer.ggml.merges");
    stated.merges.reserve(merges.size());
    for (std::size_t i = 0; i < merges.size(); ++i) {
        stated.merges.push_back(split_merge(merges[i], i, index.where));
    }
    stated.bos = special("tokenizer.ggml.bos_token_id");
    stated.eos = special("tokenizer.ggml.eos_token_id");
    stated.eot = special("tokenizer.ggml.eot_token_id");
    stated.unknown = special("tokenizer.ggml.unknown_token_id");
    stated.padding = special("tokenizer.ggml.padding_token_id");
    return check_vocabulary(stated);
}

}  // namespace skein::model
