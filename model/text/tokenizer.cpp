#include "model/text/tokenizer.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "model/error.h"
#include "model/expect.h"
#include "model/text/bpe.h"
#include "model/text/byte_trie.h"
#include "model/text/pre_tokenizer.h"
#include "model/text/unicode.h"

namespace skein::model {

namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

bool has_literal_text(TokenType type) {
    return type == TokenType::control || type == TokenType::user_defined;
}

/// FNV-1a with a length in front of every text, so that no two tables read as the same bytes.
class Hash {
  public:
    void add(std::uint64_t number) {
        for (int i = 0; i < 8; ++i) add_byte(static_cast<unsigned char>(number >> (8 * i)));
    }
    void add(std::string_view text) {
        add(std::uint64_t{text.size()});
        for (const char c : text) add_byte(static_cast<unsigned char>(c));
    }
    std::uint64_t value() const { return value_; }

  private:
    void add_byte(unsigned char byte) { value_ = (value_ ^ byte) * 0x100000001B3ULL; }
    std::uint64_t value_ = 0xCBF29CE484222325ULL;
};

std::uint64_t hash_of(const Vocabulary& v) {
    Hash hash;
    hash.add(v.pre_tokenizer);
    hash.add(std::uint64_t{v.texts.size()});
    for (std::size_t i = 0; i < v.texts.size(); ++i) {
        hash.add(v.texts[i]);
        hash.add(static_cast<std::uint64_t>(v.types[i]));
    }
    hash.add(std::uint64_t{v.merges.size()});
    for (const auto& [left, right] : v.merges) {
        hash.add(left);
        hash.add(right);
    }
    hash.add(std::uint64_t{v.ignore_merges} | (std::uint64_t{v.add_bos} << 1));
    for (const auto& id : {v.bos, v.eos, v.eot, v.unknown, v.padding}) {
        hash.add(id ? static_cast<std::uint64_t>(*id) + 1 : 0);
    }
    return hash.value();
}

Vocabulary checked(Vocabulary v) {
    const std::size_t n = v.texts.size();
    if (v.types.size() != n) {
        throw Error(fmt::format("tokenizer: {} token types for {} tokens", v.types.size(), n));
    }
    const auto check = [n](const char* name, std::optional<Token> id) {
        if (id && (*id < 0 || static_cast<std::size_t>(*id) >= n)) {
            throw Error(fmt::format("tokenizer: the {} token is {}; expected an id below {}", name,
                                    *id, n));
        }
    };
    check("bos", v.bos);
    check("eos", v.eos);
    check("eot", v.eot);
    check("unknown", v.unknown);
    check("padding", v.padding);
    return v;
}

/// The tokens with a literal text, or those of one type.
ByteTrie specials_of(const Vocabulary& v, std::optional<TokenType> only = {}) {
    std::vector<std::pair<std::string_view, std::int32_t>> entries;
    for (std::size_t i = 0; i < v.texts.size(); ++i) {
        const bool wanted = only ? v.types[i] == *only : true;
        if (wanted && has_literal_text(v.types[i]))
            entries.emplace_back(v.texts[i], static_cast<Token>(i));
    }
    return ByteTrie(std::move(entries));
}

}  // namespace

struct Tokenizer::Impl {
    explicit Impl(Vocabulary v)
        : vocabulary(checked(std::move(v))),
          pre_tokenizer(vocabulary.pre_tokenizer),
          bpe(vocabulary),
          specials(specials_of(vocabulary)),
          fingerprint(hash_of(vocabulary)) {
        for (std::size_t b = 0; b < without_token.size(); ++b) {
            const char byte = static_cast<char>(b);
            BpeScratch scratch;
            Tokens tokens;
            bpe.encode(std::string_view(&byte, 1), scratch, tokens);
            without_token[b] = tokens.empty();
        }
    }

    /// Returns how many characters were looked at.
    std::size_t encode(std::string_view bytes, BpeScratch& scratch, Tokens& out) const {
        return pre_tokenizer.split(
            bytes, [&](std::string_view piece) { bpe.encode(piece, scratch, out); });
    }
    Tokens encode_with(const ByteTrie& literals, std::string_view text) const;
    std::size_t index(Token token) const {
        const auto i = static_cast<std::size_t>(token);
        expect(token >= 0 && i < vocabulary.texts.size(), "a token is below vocab_size()");
        return i;
    }

    const Vocabulary vocabulary;  // views into it are kept by bpe; it never moves
    const PreTokenizer pre_tokenizer;
    const Bpe bpe;
    const ByteTrie specials;
    const std::uint64_t fingerprint;
    std::array<bool, 256> without_token{};
};

Tokenizer::Tokenizer(Vocabulary vocabulary)
    : impl_(std::make_unique<const Impl>(std::move(vocabulary))) {}
Tokenizer::~Tokenizer() = default;
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;

Tokens Tokenizer::encode(std::string_view bytes) const {
    return encode_counted(bytes).tokens;
}

Encoding Tokenizer::encode_counted(std::string_view bytes) const {
    Encoding out;
    BpeScratch scratch;
    const std::size_t looks = impl_->encode(bytes, scratch, out.tokens);
    out.dropped_bytes = scratch.dropped_bytes;
    out.steps = looks + scratch.heap_steps;
    return out;
}

std::size_t Tokenizer::count_dropped(std::string_view bytes) const {
    const auto lacks_token = [this](char c) {
        return impl_->without_token[static_cast<unsigned char>(c)];
    };
    if (std::none_of(bytes.begin(), bytes.end(), lacks_token)) return 0;
    return encode_counted(bytes).dropped_bytes;
}

Tokens Tokenizer::encode_with_specials(std::string_view text) const {
    return impl_->encode_with(impl_->specials, text);
}

Tokens Tokenizer::encode_with_specials(std::string_view text, TokenType only) const {
    return impl_->encode_with(specials_of(impl_->vocabulary, only), text);
}

Tokens Tokenizer::Impl::encode_with(const ByteTrie& literals, std::string_view text) const {
    Tokens out;
    BpeScratch scratch;
    std::size_t begin = 0;
    for (std::size_t at = 0; at < text.size();) {
        const auto match = literals.longest_prefix(text.substr(at));
        if (!match) {
            ++at;
            continue;
        }
        encode(text.substr(begin, at - begin), scratch, out);
        out.push_back(match->value);
        at += match->length;
        begin = at;
    }
    encode(text.substr(begin), scratch, out);
    return out;
}

std::vector<std::size_t> Tokenizer::pieces(std::string_view bytes) const {
    std::vector<std::size_t> lengths;
    impl_->pre_tokenizer.split(bytes,
                               [&](std::string_view piece) { lengths.push_back(piece.size()); });
    return lengths;
}

std::string Tokenizer::decode(std::span<const Token> tokens) const {
    std::string bytes;
    for (const Token token : tokens) bytes += token_bytes(token);
    return bytes;
}

std::string Tokenizer::decode_visible(std::span<const Token> tokens) const {
    std::string bytes;
    for (const Token token : tokens) {
        if (token_type(token) != TokenType::control) bytes += token_bytes(token);
    }
    return bytes;
}

std::string_view Tokenizer::token_bytes(Token token) const {
    return impl_->vocabulary.texts[impl_->index(token)];
}

TokenType Tokenizer::token_type(Token token) const {
    return impl_->vocabulary.types[impl_->index(token)];
}

bool Tokenizer::is_special(Token token) const {
    const TokenType type = token_type(token);
    return type != TokenType::normal && type != TokenType::byte;
}

std::optional<Token> Tokenizer::find_special(std::string_view text) const {
    const auto match = impl_->specials.longest_prefix(text);
    if (!match || match->length != text.size()) return std::nullopt;
    return match->value;
}

int Tokenizer::vocab_size() const {
    return static_cast<int>(impl_->vocabulary.texts.size());
}
std::optional<Token> Tokenizer::bos() const {
    return impl_->vocabulary.bos;
}
std::optional<Token> Tokenizer::eos() const {
    return impl_->vocabulary.eos;
}
std::optional<Token> Tokenizer::eot() const {
    return impl_->vocabulary.eot;
}
bool Tokenizer::add_bos() const {
    return impl_->vocabulary.add_bos;
}
std::uint64_t Tokenizer::fingerprint() const {
    return impl_->fingerprint;
}

Detokenizer::Detokenizer(const Tokenizer& tokenizer) : tokenizer_(&tokenizer) {}

std::string Detokenizer::push(Token token) {
    pending_ += tokenizer_->token_bytes(token);
    std::string text;
    std::size_t at = 0;
    while (at < pending_.size()) {
        const Utf8Step step = utf8_step(pending_, at);
        if (step.truncated) break;
        text += step.valid ? std::string_view(pending_).substr(at, step.length) : kReplacement;
        at += step.length;
    }
    pending_.erase(0, at);
    return text;
}

std::string Detokenizer::flush() {
    std::string text = to_valid_utf8(pending_);
    pending_.clear();
    return text;
}

std::string to_valid_utf8(std::string_view bytes) {
    std::string text;
    text.reserve(bytes.size());
    for (std::size_t at = 0; at < bytes.size();) {
        const Utf8Step step = utf8_step(bytes, at);
        text += step.valid ? bytes.substr(at, step.length) : kReplacement;
        at += step.length;
    }
    return text;
}

}  // namespace skein::model
