// tokenizer.json of byte-level BPE as a StatedVocabulary.
// Source: the serialisation of huggingface/tokenizers.
//
// Text is never normalised here: an NFC normaliser is accepted and ignored, because bytes that go
// in must come out again; other normalisers are refused.
#include <fmt/format.h>

#include <boost/json.hpp>
#include <unordered_map>

#include "model/error.h"
#include "model/load/json_text.h"
#include "model/load/printable.h"
#include "model/load/safetensors_model.h"
#include "model/load/stated_vocabulary.h"

namespace skein::model {
namespace {

namespace json = boost::json;

/// The split patterns of published tokenizers and the name of the scanner that implements each.
struct SplitPattern {
    std::string_view regex, name;
};
constexpr SplitPattern kSplitPatterns[] = {
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|)"
     R"(\s*[\r\n]+|\s+(?!\S)|\s+)",
     "qwen2"},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|)"
     R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     "llama-bpe"},
    {R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
     R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
     R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
     R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
     R"(\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     "o200k"},
    {R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
     R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
     R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
     R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
     R"(\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     "minimax-m2"},
};

class Reader {
  public:
    Reader(const json::value& tokenizer, const json::value& settings, std::string_view where,
           std::uint64_t vocab_size)
        : where_(where),
          root_(tokenizer, where_),
          settings_(settings, where_),
          vocab_size_(vocab_size) {}

    Vocabulary read() {
        stated_.where = where_;
        check_normalizer();
        stated_.pre_tokenizer = pre_tokenizer();
        stated_.tokens.assign(static_cast<std::size_t>(vocab_size_), {});
        stated_.types.assign(static_cast<std::size_t>(vocab_size_),
                             static_cast<std::uint64_t>(TokenType::unused));
        read_model();
        read_added_tokens();
        const json::value* post = root_.find("post_processor");
        stated_.add_bos = settings_.boolean("add_bos_token")
                              .value_or(post != nullptr && starts_with_special(*post));
        stated_.bos = special("bos_token");
        stated_.eos = special("eos_token");
        stated_.unknown = special("unk_token");
        stated_.padding = special("pad_token");
        return check_vocabulary(stated_);
    }

  private:
    [[noreturn]] void fail(const std::string& message) const {
        throw Error(fmt::format("{}: {}", where_, printable(message, 1000)));
    }

    void check_normalizer() const {
        const json::value* normalizer = root_.find("normalizer");
        if (normalizer == nullptr) return;
        const auto type = JsonObject(*normalizer, where_).string("type").value_or("");
        if (type != "NFC") fail(fmt::format("normalizer '{}' is not supported", type));
    }

    std::string pre_tokenizer() const {
        const json::value* value = root_.find("pre_tokenizer");
        if (value == nullptr) fail("'pre_tokenizer' is missing; only byte-level BPE is supported");
        std::vector<const json::value*> steps{value};
        const JsonObject outer(*value, where_);
        if (outer.string("type") == "Sequence") {
            const json::value* list = outer.find("pretokenizers");
            if (list == nullptr || !list->is_array()) fail("'pretokenizers' is not an array");
            steps.clear();
            for (const json::value& step : list->get_array()) steps.push_back(&step);
        }
        if (steps.empty() || steps.size() > 2) return unknown_steps(*value);
        const JsonObject last(*steps.back(), where_);
        if (last.string("type") != "ByteLevel" || last.boolean("add_prefix_space").value_or(true)) {
            return unknown_steps(*value);
        }
        const bool own_regex = last.boolean("use_regex").value_or(true);
        if (steps.size() == 1) return own_regex ? "gpt2" : unknown_steps(*value);
        const JsonObject first(*steps.front(), where_);
        if (own_regex) {
            const bool digits = first.string("type") == "Digits" &&
                                first.boolean("individual_digits").value_or(false);
            return digits ? "smollm" : unknown_steps(*value);
        }
        if (first.string("type") != "Split" || first.string("behavior") != "Isolated" ||
            first.boolean("invert").value_or(false) || first.find("pattern") == nullptr) {
            return unknown_steps(*value);
        }
        const auto regex = JsonObject(*first.find("pattern"), where_).string("Regex").value_or("");
        for (const SplitPattern& row : kSplitPatterns) {
            if (row.regex == regex) return std::string(row.name);
        }
        return unknown_steps(*value);
    }

    [[noreturn]] std::string unknown_steps(const json::value& value) const {
        fail(fmt::format("this pre_tokenizer is not known: {}", json::serialize(value)));
    }

    void read_model() {
        const json::value* value = root_.find("model");
        if (value == nullptr) fail("'model' is missing");
        const JsonObject model(*value, where_);
        if (model.string("type").value_or("BPE") != "BPE") {
            fail(fmt::format("tokenizer model '{}' is not supported, only BPE is",
                             *model.string("type")));
        }
        stated_.ignore_merges = model.boolean("ignore_merges").value_or(false);
        const json::value* vocab = model.find("vocab");
        if (vocab == nullptr || !vocab->is_object()) fail("'model.vocab' is not an object");
        for (const auto& [text, id] : vocab->get_object()) {
            place(token_id(id), {text.data(), text.size()}, TokenType::normal);
        }
        const json::value* merges = model.find("merges");
        if (merges == nullptr || !merges->is_array()) fail("'model.merges' is not an array");
        for (const json::value& merge : merges->get_array()) read_merge(merge);
    }

    std::size_t token_id(const json::value& id) const {
        const auto* value = id.if_int64();
        if (value == nullptr || *value < 0 || static_cast<std::uint64_t>(*value) >= vocab_size_) {
            fail(fmt::format("token id {} is not in the vocabulary of {}", json::serialize(id),
                             vocab_size_));
        }
        return static_cast<std::size_t>(*value);
    }

    void place(std::size_t id, std::string_view text, TokenType type) {
        if (type == TokenType::normal &&
            stated_.types[id] != static_cast<std::uint64_t>(TokenType::unused)) {
            fail(fmt::format("token id {} belongs to '{}' and to '{}'", id, stated_.tokens[id],
                             text));
        }
        stated_.tokens[id] = text;
        stated_.types[id] = static_cast<std::uint64_t>(type);
        id_of_[text] = id;
    }

    /// "left right", or [left, right] in newer files.
    void read_merge(const json::value& merge) {
        if (const json::array* pair = merge.if_array()) {
            if (pair->size() == 2 && (*pair)[0].is_string() && (*pair)[1].is_string()) {
                const json::string& left = (*pair)[0].get_string();
                const json::string& right = (*pair)[1].get_string();
                stated_.merges.emplace_back(std::string_view(left.data(), left.size()),
                                            std::string_view(right.data(), right.size()));
                return;
            }
        } else if (const json::string* text = merge.if_string()) {
            const std::string_view whole(text->data(), text->size());
            const std::size_t space = whole.find(' ', 1);
            if (space != std::string_view::npos && space + 1 < whole.size()) {
                stated_.merges.emplace_back(whole.substr(0, space), whole.substr(space + 1));
                return;
            }
        }
        fail(fmt::format("merge {} is {}, expected two parts", stated_.merges.size(),
                         json::serialize(merge)));
    }

    void read_added_tokens() {
        const json::value* list = root_.find("added_tokens");
        if (list == nullptr) return;
        if (!list->is_array()) fail("'added_tokens' is not an array");
        for (const json::value& item : list->get_array()) {
            const JsonObject token(item, where_);
            const auto content = token.string("content");
            const json::value* id = token.find("id");
            if (!content || content->empty() || id == nullptr) {
                fail("an added token has no id or no content");
            }
            place(token_id(*id), *content,
                  token.boolean("special").value_or(false) ? TokenType::control
                                                           : TokenType::user_defined);
        }
    }

    /// Whether a template post-processor puts a control token before the text.
    bool starts_with_special(const json::value& value) const {
        const JsonObject post(value, where_);
        if (post.string("type") == "Sequence") {
            const json::value* list = post.find("processors");
            if (list == nullptr || !list->is_array()) return false;
            for (const json::value& item : list->get_array()) {
                if (starts_with_special(item)) return true;
            }
            return false;
        }
        if (post.string("type") != "TemplateProcessing") return false;
        const json::value* single = post.find("single");
        if (single == nullptr || !single->is_array() || single->get_array().empty()) return false;
        return JsonObject(single->get_array()[0], where_).find("SpecialToken") != nullptr;
    }

    /// A named token of tokenizer_config.json, given as its text or as {"content": text}.
    StatedTokenId special(const char* key) const {
        StatedTokenId id{key, std::nullopt};
        const json::value* value = settings_.find(key);
        if (value == nullptr) return id;
        const auto text = value->is_object() ? JsonObject(*value, where_).string("content")
                                             : settings_.string(key);
        const auto found = id_of_.find(text.value_or(""));
        if (found == id_of_.end()) {
            fail(fmt::format("'{}' is '{}', which is not a token", key, text.value_or("")));
        }
        id.value = found->second;
        return id;
    }

    std::string where_;
    JsonObject root_;
    JsonObject settings_;
    std::uint64_t vocab_size_;
    StatedVocabulary stated_;
    std::unordered_map<std::string_view, std::size_t> id_of_;
};

}  // namespace

Vocabulary tokenizer_json_vocabulary(const json::value& tokenizer, const json::value& settings,
                                     std::string_view where, std::uint64_t vocab_size) {
    return Reader(tokenizer, settings, where, vocab_size).read();
}

}  // namespace skein::model
