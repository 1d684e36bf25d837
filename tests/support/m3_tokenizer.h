#pragma once
// The tokenizer of the m3-tokenizer fixture: 512 rows with MiniMax-M3's added tokens.

#include "model/text/tokenizer.h"
#include "tests/model/text/text_fixtures.h"

namespace skein::test {

inline model::Vocabulary m3_vocabulary() {
    const auto file = load_json(SKEIN_TEST_DATA "/fixtures/m3-tokenizer/tokenizer.json");
    model::Vocabulary v = vocabulary_of(file, "minimax-m2", 512);
    v.eos = 468;  // [e~[
    v.bos = 482;  // ]~!b[
    return v;
}

inline const model::Tokenizer& m3_tokenizer() {
    static const model::Tokenizer tokenizer(m3_vocabulary());
    return tokenizer;
}

}  // namespace skein::test
