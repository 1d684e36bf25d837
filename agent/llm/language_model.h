#pragma once
// What the agent needs from a model: continue these exact tokens. PUBLIC.

#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "agent/context/token_log.h"
#include "agent/limits.h"
#include "model/sampling/grammar.h"
#include "model/sampling/sampler.h"
#include "model/text/tokenizer.h"

namespace skein::agent {

enum class FinishReason { stop, length, grammar_complete, cancelled, error };
std::string_view to_string(FinishReason reason);

struct CompletionRequest {
    std::span<const Token> prompt;  ///< the whole log; valid until the completion is there
    model::SamplingParams sampling;
    int max_tokens = 2048;
    std::vector<Token> stop_tokens;  ///< sampled stop tokens are part of the result
    std::shared_ptr<const model::Grammar> grammar;  ///< null: free
    std::function<void(Token)> on_token;  ///< from the inference thread
};

/// All vectors have one entry a token.
struct Completion {
    Tokens tokens;  ///< exactly as sampled, a final stop token included
    std::vector<float> logprobs;  ///< raw log softmax, also for forced tokens
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
