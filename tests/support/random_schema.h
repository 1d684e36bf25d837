#pragma once
// Random JSON Schemas of the subset that tools accept, and the loop that samples one text under a
// grammar from any source of logits.

#include <boost/json.hpp>

#include <algorithm>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "model/sampling/sampler.h"
#include "model/sampling/token_mask.h"

namespace skein::test {

/// Draws schemas that depend on the seed alone (no distribution of the standard library is used).
class RandomSchema {
  public:
    explicit RandomSchema(std::uint64_t seed) : random_(seed) {}

    /// The arguments of a tool: an object with up to five properties, nested at most `depth` times.
    boost::json::object arguments(int depth = 3) { return object_schema(depth); }

  private:
    int below(int n) { return static_cast<int>(random_() % static_cast<std::uint64_t>(n)); }
    bool chance(int percent) { return below(100) < percent; }

    std::string name() {
        static const char* const kNames[] = {"path",   "pat",     "p",      "count",
                                             "a b",    "quo\"te", "back\\", "\xC3\xA9t\xC3\xA9",
                                             "line\n", "deep",    "n"};
        return kNames[below(11)];
    }

    boost::json::value scalar() {
        switch (below(6)) {
            case 0:
                return below(2000) - 1000;
            case 1:
                return 0.5 * below(10);
            case 2:
                return chance(50);
            case 3:
                return nullptr;
            case 4:
                return {1, "x", nullptr};
            default:
                return boost::json::value(name());
        }
    }

    boost::json::object any_schema(int depth) {
        switch (below(depth > 0 ? 11 : 8)) {
            case 0:
                return string_schema();
            case 1:
                return integer_schema();
            case 2:
                return number_schema();
            case 3:
                return {{"type", "boolean"}};
            case 4:
                return {{"type", "null"}};
            case 5:
                return {{"const", scalar()}, {"description", "one value"}};
            case 6:
                return enum_schema();
            case 7:
                return chance(20) ? boost::json::object{} : string_schema();
            case 8:
                return array_schema(depth - 1);
            default:
                return object_schema(depth - 1);
        }
    }

    boost::json::object string_schema() {
        boost::json::object schema{{"type", "string"}};
        const int least = chance(40) ? below(12) : 0;
        if (least > 0) schema["minLength"] = least;
        if (chance(60)) schema["maxLength"] = least + below(20);
        return schema;
    }

    boost::json::object integer_schema() {
        boost::json::object schema{{"type", "integer"}};
        const std::int64_t low = static_cast<std::int64_t>(random_()) >> below(64);
        if (chance(60)) schema["minimum"] = low;
        if (chance(60)) {
            const std::int64_t room = INT64_MAX - std::max<std::int64_t>(low, 0);
            schema["maximum"] = low + std::min<std::int64_t>(room, below(1000));
        }
        return schema;
    }

    boost::json::object number_schema() {
        boost::json::object schema{{"type", "number"}};
        const double low = (below(2'000'000) - 1'000'000) / 1000.0;
        if (chance(50)) schema["minimum"] = low;
        if (chance(50)) schema["maximum"] = low + below(1000) / 100.0;
        return schema;
    }

    boost::json::object enum_schema() {
        boost::json::array values;
        for (int n = 1 + below(5); n > 0; --n) values.push_back(scalar());
        values.push_back(boost::json::value(name()));
        boost::json::object schema{{"enum", values}};
        if (chance(50)) schema["type"] = "string";
        return schema;
    }

    boost::json::object array_schema(int depth) {
        boost::json::object schema{{"type", "array"}, {"items", any_schema(depth)}};
        const int least = chance(40) ? below(4) : 0;
        if (least > 0) schema["minItems"] = least;
        if (chance(60)) schema["maxItems"] = least + below(4);
        return schema;
    }

    boost::json::object object_schema(int depth) {
        boost::json::object properties;
        boost::json::array required;
        for (int n = below(6); n > 0; --n) {
            const std::string key = name();
            if (properties.contains(key)) continue;
            properties[key] = any_schema(depth);
            if (chance(50)) required.push_back(boost::json::value(key));
        }
        boost::json::object schema{{"type", "object"}, {"properties", properties}};
        if (!required.empty()) schema["required"] = required;
        if (chance(50)) schema["additionalProperties"] = false;
        return schema;
    }

    std::mt19937_64 random_;
};

/// One sentence of the decoder's grammar, or what there is of it after `max_tokens`. `logits_of`
/// gets the tokens so far and returns logits of the whole vocabulary.
template <class LogitsOf>
model::Tokens sample_sentence(model::ConstrainedDecoder& decoder,
                              const model::SamplingParams& params, bool take_forced,
                              std::size_t max_tokens, LogitsOf&& logits_of) {
    model::Tokens tokens;
    while (!decoder.done() && tokens.size() < max_tokens) {
        const model::Tokens forced = take_forced ? decoder.forced() : model::Tokens{};
        for (const model::Token token : forced) {
            decoder.advance(token);
            tokens.push_back(token);
        }
        if (!forced.empty()) continue;
        const model::Token token =
            model::sample_among(logits_of(std::span<const model::Token>(tokens)), params,
                                tokens.size(), decoder.allowed())
                .token;
        decoder.advance(token);
        tokens.push_back(token);
    }
    return tokens;
}

}  // namespace skein::test
