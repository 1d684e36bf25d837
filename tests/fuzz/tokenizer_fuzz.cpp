// Any bytes through every pre-tokenizer family: pieces cover the input, decoding gives it back, no
// special token appears, and streaming shows what decoding at once shows.

#include <cstdint>
#include <cstdlib>
#include <string>

#include "model/text/tokenizer.h"
#include "tests/support/byte_vocabulary.h"

using namespace skein::model;

namespace {

void require(bool condition) {
    if (!condition) std::abort();
}

const Tokenizer& tokenizer_of(std::uint8_t selector) {
    static const auto tokenizers = [] {
        std::vector<Tokenizer> all;
        for (const char* family : {"gpt2", "smollm", "qwen2", "llama-bpe", "o200k", "minimax-m2"}) {
            Vocabulary v = skein::test::byte_vocabulary();
            v.pre_tokenizer = family;
            all.emplace_back(std::move(v));
        }
        return all;
    }();
    return tokenizers[selector % tokenizers.size()];
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    const Tokenizer& tokenizer = tokenizer_of(data[0]);
    const std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
    std::size_t total = 0;
    for (const std::size_t piece : tokenizer.pieces(bytes)) {
        require(piece > 0);
        total += piece;
    }
    require(total == bytes.size());
    const Tokens tokens = tokenizer.encode(bytes);
    require(tokenizer.decode(tokens) == bytes);
    require(tokenizer.decode(tokenizer.encode_with_specials(bytes)) == bytes);
    Detokenizer stream(tokenizer);
    std::string shown;
    for (const Token token : tokens) {
        require(!tokenizer.is_special(token));
        shown += stream.push(token);
    }
    shown += stream.flush();
    require(shown == to_valid_utf8(bytes));
    require(to_valid_utf8(shown) == shown);
    return 0;
}
