#pragma once
// A LanguageModel over the engine in this process. PUBLIC.
//
// One inference thread owns one session. Requests wait for their turn in the order they came; each
// makes the session equal its prompt (evaluating only what differs from the last request) and
// continues it. What is drawn depends on the tokens, the seed and the position alone.

#include <memory>
#include <string>

#include "agent/llm/language_model.h"
#include "model/engine.h"

namespace skein::agent {

struct LocalModelOptions {
    int max_context = 0;        ///< tokens; 0: what the model was trained for
    std::string chat_format{};  ///< empty: by the model's template or architecture
};

/// Threads: `complete` may be called from any executor. Lifetime: the executor's context outlives
/// every completion, and this object too.
class LocalModel final : public LanguageModel {
  public:
    /// Throws: model::Error when the context cannot be had.
    explicit LocalModel(std::shared_ptr<const model::Engine> engine,
                        LocalModelOptions options = {});
    /// Cancels what runs and waits for the inference thread.
    ~LocalModel() override;

    const model::Tokenizer& tokenizer() const override;
    int max_context() const override;
    std::string description() const override;
    /// Throws: model::Error when no format was named and the model's template is not a known one.
    std::string chat_format() const override;
    /// Never throws: what fails is FinishReason::error with the tokens sampled before it. A
    /// cancellation stops within one token (or one chunk of the prompt) and gives
    /// FinishReason::cancelled.
    boost::asio::awaitable<Completion> complete(CompletionRequest request) override;

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace skein::agent
