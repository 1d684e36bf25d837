#include "agent/context/tool_output.h"

#include <fmt/format.h>

#include <algorithm>

namespace skein::agent {

namespace {

constexpr int kMaxSplitTokens = 3;  // an UTF-8 character has at most three continuation bytes

bool continues_character(const model::Tokenizer& tokenizer, Token token) {
    const std::string_view bytes = tokenizer.token_bytes(token);
    return !bytes.empty() && (static_cast<unsigned char>(bytes.front()) & 0xC0) == 0x80;
}

struct Kept {
    int head = 0, tail = 0;
};

/// `keep` tokens from both ends, made fewer where they would split a character.
Kept choose_edges(const Tokens& all, int keep, const model::Tokenizer& tokenizer) {
    const int total = static_cast<int>(all.size());
    Kept kept{keep / 2, 0};
    const auto splits = [&](int at) {
        return at > 0 && at < total &&
               continues_character(tokenizer, all[static_cast<std::size_t>(at)]);
    };
    for (int i = 0; i < kMaxSplitTokens && kept.head > 0 && splits(kept.head); ++i) --kept.head;
    kept.tail = keep - kept.head;
    for (int i = 0; i < kMaxSplitTokens && kept.tail > 0 && splits(total - kept.tail); ++i) {
        --kept.tail;
    }
    return kept;
}

}  // namespace

ToolOutput cut_tool_output(std::string_view text, int max_tokens, std::string_view reference,
                           const model::Tokenizer& tokenizer) {
    Tokens all = tokenizer.encode(text);
    const int total = static_cast<int>(all.size());
    if (max_tokens <= 0 || total <= max_tokens) {
        return {std::move(all), std::string(text), total, 0};
    }

    const auto describe = [&](int dropped) {
        return tokenizer.encode(fmt::format(
            "\n[output cut: {} of {} tokens left out here, {} bytes in all; full copy: {}; "
            "ask for a smaller part to see more]\n", dropped, total, text.size(), reference));
    };
    // The notice names the number of dropped tokens, and that number depends on the notice's own
    // length. Dropping only ever more makes this end.
    int dropped = total - max_tokens;
    while (true) {
        Tokens notice = describe(dropped);
        const int excess = total - dropped + static_cast<int>(notice.size()) - max_tokens;
        if (excess > 0 && dropped == total) {
            Tokens tokens(notice.begin(), notice.begin() + max_tokens);
            return {tokens, tokenizer.decode(tokens), total, total};
        }
        if (excess > 0) {
            dropped = std::min(total, dropped + excess);
            continue;
        }
        const Kept kept = choose_edges(all, total - dropped, tokenizer);
        const int left_out = total - kept.head - kept.tail;
        if (left_out != dropped) notice = describe(left_out);
        if (total - left_out + static_cast<int>(notice.size()) > max_tokens) {
            ++dropped;
            continue;
        }
        Tokens tokens(all.begin(), all.begin() + kept.head);
        tokens.insert(tokens.end(), notice.begin(), notice.end());
        tokens.insert(tokens.end(), all.end() - kept.tail, all.end());
        return {tokens, tokenizer.decode(tokens), total, left_out};
    }
}

}  // namespace skein::agent
