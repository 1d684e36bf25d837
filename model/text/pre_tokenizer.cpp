#include "model/text/pre_tokenizer.h"

#include <array>
#include <string>

#include <fmt/format.h>

#include "model/error.h"

namespace skein::model {

namespace {

struct Alias {
    std::string_view name, family;
};

/// Names found in model files, next to the family they mean.
constexpr std::array<Alias, 13> kAliases{{
    {"gpt2", "gpt2"},
    {"gpt-2", "gpt2"},
    {"smollm", "smollm"},
    {"qwen2", "qwen2"},
    {"deepseek-r1-qwen", "qwen2"},
    {"llama-bpe", "llama-bpe"},
    {"llama3", "llama-bpe"},
    {"llama-v3", "llama-bpe"},
    {"o200k", "o200k"},
    {"gpt-4o", "o200k"},
    {"llama4", "o200k"},
    {"minimax-m2", "minimax-m2"},
    {"minimax-m3", "minimax-m2"},
}};

char lower_ascii(char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
}

}  // namespace

PreTokenizer::PreTokenizer(std::string_view name) {
    std::string_view family;
    std::string known;
    for (const Alias& alias : kAliases) {
        if (alias.name == name) family = alias.family;
        known += fmt::format("{}{}", known.empty() ? "" : ", ", alias.name);
    }
    if (family.empty()) {
        throw Error(fmt::format("tokenizer: unknown pre-tokenizer '{}'; known: {}", name, known));
    }
    digits_apart_ = family == "smollm";
    if (family == "qwen2" || family == "llama-bpe") {
        family_ = Family::qwen2;
        max_digits_ = family == "qwen2" ? 1 : 3;
    } else if (family == "o200k" || family == "minimax-m2") {
        family_ = Family::o200k;
        slash_in_tail_ = family == "o200k";
    }
}

PreTokenizer::Unit PreTokenizer::Reader::at(std::size_t position) {
    ++looks;
    if (position >= text.size()) return {CharClass::end, 0};
    const Utf8Step step = utf8_step(text, position);
    if (!step.valid) return {CharClass::other, 1};
    return {classes.of(step.code_point), step.length};
}

template <class Predicate>
PreTokenizer::Run PreTokenizer::run(Reader& reader, std::size_t begin, Predicate&& belongs) {
    Run result{begin, begin};
    for (;;) {
        const Unit unit = reader.at(result.end);
        if (!belongs(unit.kind)) return result;
        result.last = result.end;
        result.end += unit.length;
    }
}

/// The length of a contraction's bytes at `at`, apostrophe included, or 0.
std::size_t PreTokenizer::contraction(const Reader& reader, std::size_t at, bool ignore_case) {
    const std::string_view rest = reader.text.substr(at, 3);
    if (rest.size() < 2 || rest[0] != '\'') return 0;
    const auto letter = [&](std::size_t i) { return ignore_case ? lower_ascii(rest[i]) : rest[i]; };
    const char first = letter(1);
    if (first == 's' || first == 't' || first == 'm' || first == 'd') return 2;
    if (rest.size() < 3) return 0;
    // U+017F folds to 's', the only letter outside ASCII that any contraction matches.
    if (ignore_case && rest.substr(1) == "\xC5\xBF") return 3;
    const char second = letter(2);
    const bool two =
        ((first == 'r' || first == 'v') && second == 'e') || (first == 'l' && second == 'l');
    return two ? 3 : 0;
}

std::size_t PreTokenizer::end_of_piece(Reader& reader, std::size_t begin) const {
    switch (family_) {
        case Family::gpt2:
            return gpt2_piece(reader, begin);
        case Family::qwen2:
            return qwen2_piece(reader, begin);
        case Family::o200k:
            break;
    }
    if (const std::size_t end = o200k_word(reader, begin); end != begin) return end;
    if (reader.at(begin).kind == CharClass::number) return digits(reader, begin);
    return punctuation_or_space(reader, begin);
}

std::size_t PreTokenizer::gpt2_piece(Reader& reader, std::size_t begin) const {
    if (const std::size_t length = contraction(reader, begin, false)) return begin + length;
    std::size_t start = begin;
    Unit unit = reader.at(start);
    if (unit.kind == CharClass::number && digits_apart_) return begin + unit.length;
    if (unit.kind == CharClass::blank) {
        start += unit.length;
        unit = reader.at(start);
    }
    if (is_letter(unit.kind)) return run(reader, start, is_letter).end;
    if (unit.kind == CharClass::number && !digits_apart_) {
        return run(reader, start, [](CharClass c) { return c == CharClass::number; }).end;
    }
    if (is_punctuation(unit.kind)) return run(reader, start, is_punctuation).end;
    return space(reader, begin, false);
}

std::size_t PreTokenizer::qwen2_piece(Reader& reader, std::size_t begin) const {
    if (const std::size_t length = contraction(reader, begin, true)) return begin + length;
    const Unit unit = reader.at(begin);
    if (is_letter(unit.kind)) return run(reader, begin, is_letter).end;
    if (unit.kind == CharClass::number) return digits(reader, begin);
    const std::size_t after = begin + unit.length;
    if (unit.kind != CharClass::newline && is_letter(reader.at(after).kind)) {
        return run(reader, after, is_letter).end;
    }
    return punctuation_or_space(reader, begin);
}

/// The two word alternatives of o200k, or `begin` when neither matches.
///
/// What backtracking does there has a closed form. After the greedy U* took a run, L+ goes on if a
/// lower-case letter follows; else the run's last character that is in both sets (Lm, Lo, M) is
/// given to L+, and the word ends after it; else only the second alternative is left.
std::size_t PreTokenizer::o200k_word(Reader& reader, std::size_t begin) const {
    const auto in_both = [](CharClass c) { return c == CharClass::letter || c == CharClass::mark; };
    const auto word_from = [&](std::size_t start, bool second_alternative) {
        std::size_t after_both = start;
        std::size_t end = start;
        Unit unit = reader.at(end);
        while (unit.kind == CharClass::upper || in_both(unit.kind)) {
            end += unit.length;
            if (in_both(unit.kind)) after_both = end;
            unit = reader.at(end);
        }
        if (unit.kind == CharClass::lower) {
            return run(reader, end,
                       [&](CharClass c) { return c == CharClass::lower || in_both(c); })
                .end;
        }
        if (after_both != start) return after_both;
        return second_alternative ? end : start;
    };
    const Unit first = reader.at(begin);
    const bool takes_prefix = first.kind != CharClass::newline && !is_letter(first.kind) &&
                              first.kind != CharClass::number && first.kind != CharClass::end;
    const std::size_t after_prefix = takes_prefix ? begin + first.length : begin;
    std::size_t start = after_prefix;
    std::size_t end = word_from(start, false);
    if (end == start && first.kind == CharClass::mark) {
        // The prefix may be given back, and a mark is itself a word.
        start = begin;
        end = word_from(start, false);
    }
    if (end == start) {
        start = after_prefix;
        end = word_from(start, true);
    }
    if (end == start) return begin;
    return end + contraction(reader, end, true);
}

std::size_t PreTokenizer::digits(Reader& reader, std::size_t begin) const {
    int left = max_digits_;
    return run(reader, begin, [&](CharClass c) { return c == CharClass::number && left-- > 0; })
        .end;
}

std::size_t PreTokenizer::punctuation_or_space(Reader& reader, std::size_t begin) const {
    std::size_t start = begin;
    Unit unit = reader.at(start);
    if (unit.kind == CharClass::blank) {
        start += unit.length;
        unit = reader.at(start);
    }
    if (!is_punctuation(unit.kind)) return space(reader, begin, true);
    std::size_t end = run(reader, start, is_punctuation).end;
    for (; end < reader.text.size(); ++end) {
        const char c = reader.text[end];
        if (c != '\r' && c != '\n' && !(slash_in_tail_ && c == '/')) break;
    }
    return end;
}

/// `\s*[\r\n]+` (if `newlines_first`), `\s+(?!\S)`, `\s+`: up to the last newline; else all, but a
/// last character before a word is left to that word. Parts of smollm end before every digit.
std::size_t PreTokenizer::space(Reader& reader, std::size_t begin, bool newlines_first) const {
    std::size_t after_newline = begin;
    std::size_t last = begin;
    std::size_t end = begin;
    Unit unit = reader.at(end);
    while (is_space(unit.kind)) {
        last = end;
        end += unit.length;
        if (unit.kind == CharClass::newline) after_newline = end;
        unit = reader.at(end);
    }
    if (newlines_first && after_newline != begin) return after_newline;
    const bool part_ends =
        unit.kind == CharClass::end || (digits_apart_ && unit.kind == CharClass::number);
    return part_ends || last == begin ? end : last;
}

}  // namespace skein::model
