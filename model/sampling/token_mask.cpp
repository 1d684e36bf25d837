#include "model/sampling/token_mask.h"

#include <algorithm>

#include <fmt/format.h>

#include "model/error.h"
#include "model/sampling/grammar_machine.h"
#include "model/text/unicode.h"

namespace skein::model {

namespace {

/// The characters of a text that a JSON string may hold as it is, or 0 for any other text.
int count_plain(std::string_view bytes) {
    int n = 0;
    for (std::size_t at = 0; at < bytes.size(); ++n) {
        const Utf8Step step = utf8_step(bytes, at);
        if (!step.valid || step.code_point < 0x20 || step.code_point == '"' ||
            step.code_point == '\\') {
            return 0;
        }
        at += step.length;
    }
    return n;
}

}  // namespace

TokenIndex::TokenIndex(const Tokenizer& tokenizer) : tokenizer_(&tokenizer) {
    const auto n = static_cast<std::size_t>(tokenizer.vocab_size());
    plain_characters_.assign(n, 0);
    std::vector<std::pair<std::string_view, std::int32_t>> all, special_bytes;
    int longest = 0;
    for (std::size_t i = 0; i < n; ++i) {
        const auto token = static_cast<Token>(i);
        const std::string_view bytes = tokenizer.token_bytes(token);
        if (tokenizer.is_special(token) || bytes.empty()) continue;
        all.emplace_back(bytes, token);
        const int characters = count_plain(bytes);
        plain_characters_[i] = characters;
        longest = std::max(longest, characters);
        if (characters == 0) {
            special_bytes.emplace_back(bytes, token);
        } else {
            plain_.push_back(token);
        }
    }
    all_ = ByteTrie(std::move(all));
    special_bytes_ = ByteTrie(std::move(special_bytes));
    std::stable_sort(plain_.begin(), plain_.end(), [this](Token a, Token b) {
        return plain_characters(a) < plain_characters(b);
    });
    plain_ends_.assign(static_cast<std::size_t>(longest) + 1, 0);
    for (const Token token : plain_)
        ++plain_ends_[static_cast<std::size_t>(plain_characters(token))];
    for (std::size_t i = 1; i < plain_ends_.size(); ++i) plain_ends_[i] += plain_ends_[i - 1];
}

std::span<const Token> TokenIndex::plain_up_to(int n) const {
    const auto last = std::min(static_cast<std::size_t>(std::max(n, 0)), plain_ends_.size() - 1);
    return std::span(plain_).first(plain_ends_[last]);
}

ConstrainedDecoder::ConstrainedDecoder(std::shared_ptr<const TokenIndex> index,
                                       std::shared_ptr<const Grammar> grammar)
    : index_(std::move(index)), state_(std::move(grammar)) {}

ConstrainedDecoder::ConstrainedDecoder(const Tokenizer& tokenizer,
                                       std::shared_ptr<const Grammar> grammar)
    : ConstrainedDecoder(std::make_shared<const TokenIndex>(tokenizer), std::move(grammar)) {}

/// Sets the mask of every token of the trie that the grammar takes whole.
void ConstrainedDecoder::walk(const ByteTrie& trie) {
    const auto& nodes = trie.nodes();
    std::vector<std::size_t> ends;     // where the subtree of each node on the path ends
    std::vector<ThreadSet> states(1);  // [d]: after d bytes; one more than `ends`
    states[0] = state_.threads();
    for (std::size_t i = 0; i < nodes.size();) {
        while (!ends.empty() && i >= ends.back()) ends.pop_back();
        const std::size_t depth = ends.size();
        if (states.size() < depth + 2) states.resize(depth + 2);
        step(state_.grammar(), states[depth], nodes[i].byte, states[depth + 1]);
        if (states[depth + 1].empty()) {
            i += nodes[i].subtree;
            continue;
        }
        if (nodes[i].value >= 0) mask_[static_cast<std::size_t>(nodes[i].value)] = 1;
        ends.push_back(i + nodes[i].subtree);
        ++i;
    }
}

bool ConstrainedDecoder::is_end(Token token) const {
    const Tokenizer& tokenizer = index_->tokenizer();
    return token == tokenizer.eot() || token == tokenizer.eos();
}

void ConstrainedDecoder::compute() {
    if (fresh_) return;
    const Tokenizer& tokenizer = index_->tokenizer();
    mask_.assign(static_cast<std::size_t>(tokenizer.vocab_size()), 0);
    allowed_.clear();
    if (!ended_) {
        if (const int n = free_characters(state_.grammar(), state_.threads()); n > 0) {
            for (const Token token : index_->plain_up_to(n)) {
                mask_[static_cast<std::size_t>(token)] = 1;
            }
            walk(index_->special_bytes());
        } else {
            walk(index_->all());
        }
        for (const Token token : state_.grammar().tokens) {
            if (token < tokenizer.vocab_size() && state_.accepts_token(token)) {
                mask_[static_cast<std::size_t>(token)] = 1;
            }
        }
        const bool may_go_on = std::find(mask_.begin(), mask_.end(), 1) != mask_.end();
        if (complete() && may_go_on) {
            for (const auto& end : {tokenizer.eot(), tokenizer.eos()}) {
                if (end) mask_[static_cast<std::size_t>(*end)] = 1;
            }
        }
        for (std::size_t i = 0; i < mask_.size(); ++i) {
            if (mask_[i] != 0) allowed_.push_back(static_cast<Token>(i));
        }
        if (allowed_.empty() && !complete()) {
            throw Error("grammar: the vocabulary has no token for any legal continuation");
        }
    }
    fresh_ = true;
}

std::span<const Token> ConstrainedDecoder::allowed() {
    compute();
    return allowed_;
}

bool ConstrainedDecoder::allows(Token token) {
    compute();
    return token >= 0 && static_cast<std::size_t>(token) < mask_.size() &&
           mask_[static_cast<std::size_t>(token)] != 0;
}

TokenFilter ConstrainedDecoder::filter() {
    return [this](Token token) { return allows(token); };
}

Tokens ConstrainedDecoder::forced() const {
    constexpr std::size_t kMost = 512;
    Tokens run;
    if (ended_) return run;
    const Tokenizer& tokenizer = index_->tokenizer();
    GrammarState state = state_;
    while (run.size() < kMost) {
        const std::string bytes = state.forced();
        if (bytes.empty()) {
            const auto token = state.forced_token();
            if (!token || *token >= tokenizer.vocab_size()) break;
            state.advance_token(*token);
            run.push_back(*token);
            continue;
        }
        const Tokens tokens = tokenizer.encode(bytes);
        if (tokenizer.decode(tokens) != bytes) break;  // a byte without a token
        GrammarState after = state;
        after.advance(bytes);
        // Only bytes can join the last token; the end or a control token cannot.
        const bool open = after.takes_bytes();
        run.insert(run.end(), tokens.begin(), tokens.end() - (open ? 1 : 0));
        if (open) break;
        state = std::move(after);
    }
    if (run.size() > kMost) run.resize(kMost);
    return run;
}

/// False, and nothing changes, for a token that may not come next.
bool ConstrainedDecoder::move(GrammarState& state, Token token) const {
    const Tokenizer& tokenizer = index_->tokenizer();
    if (token < 0 || token >= tokenizer.vocab_size()) return false;
    const auto& tokens = state.grammar().tokens;
    if (std::find(tokens.begin(), tokens.end(), token) != tokens.end()) {
        return state.advance_token(token);
    }
    const std::string_view bytes = tokenizer.token_bytes(token);
    return !tokenizer.is_special(token) && !bytes.empty() && state.advance(bytes);
}

void ConstrainedDecoder::advance(Token token) {
    if (!ended_ && is_end(token) && complete() && !state_.accepts_token(token)) {
        ended_ = true;
    } else if (ended_ || !move(state_, token)) {
        throw Error(fmt::format("grammar: token {} is not allowed here", token));
    }
    fresh_ = false;
}

bool ConstrainedDecoder::complete() const {
    return state_.complete();
}
bool ConstrainedDecoder::dead_end() const {
    return ended_ || state_.dead_end();
}

}  // namespace skein::model
