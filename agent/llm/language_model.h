#pragma once
// What the agent needs from a model: continue these exact tokens. PUBLIC.

#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "agent/chat/thinking.h"
#include "agent/context/token_log.h"
#include "agent/limits.h"
#include "model/sampling/grammar.h"
#include "model/sampling/sampler.h"
#include "model/text/tokenizer.h"

namespace skein::agent {

enum class FinishReason { stop, length, grammar_complete, cancelled, error };
std::string_view to_string(FinishReason reason);

/// Closes the thinking part of a reply for the model when it has used up its tokens; the reply goes
/// on behind it. `opened`: the prompt already ended inside it.
struct ThinkingLimit {
    ThinkingTags tags;
    bool opened = false;
    int max_tokens = 0;
};

struct CompletionRequest {
    std::span<const Token> prompt;  ///< the whole log; valid until the completion is there
    model::SamplingParams sampling;
    int max_tokens = 2048;
    std::vector<Token> stop_tokens;  ///< sampled stop tokens are part of the result
    std::shared_ptr<const model::Grammar> grammar;  ///< null: free
    std::optional<ThinkingLimit> thinking;          ///< nothing: no limit of its own
    std::function<void(Token)> on_token;  ///< from the inference thread
};

/// All vectors have one entry a token.
struct Completion {
    Tokens tokens;  ///< exactly as sampled, a final stop token included
    /// Raw log softmax of what was sampled; NaN for forced tokens, which nobody asked a model for.
    std::vector<float> logprobs;
    std::vector<Origin> origins;  ///< sampled or forced
    FinishReason finish = FinishReason::stop;
    std::string error;  ///< for FinishReason::error
    std::int64_t reused_tokens = 0, evaluated_tokens = 0;
    std::uint64_t rng_position = 0;  ///< counter of the first draw (= log position)
    double prefill_seconds = 0, decode_seconds = 0;
};

class LanguageModel {
  public:
    virtual ~LanguageModel() = default;
    virtual const model::Tokenizer& tokenizer() const = 0;
    virtual int max_context() const = 0;
    /// Stored with the run: model path or name, numerics version, tokenizer fingerprint.
    virtual std::string description() const = 0;
    virtual std::string chat_format() const = 0;  ///< name for make_chat_format
    virtual boost::asio::awaitable<Completion> complete(CompletionRequest request) = 0;
};

}  // namespace skein::agent
