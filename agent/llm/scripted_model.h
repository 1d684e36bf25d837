#pragma once
// A LanguageModel that says what it was told to say: tests, examples, `proposer: scripted`.
// It keeps a real model's contract: stops at stop tokens, at max_tokens, at the end of a grammar,
// and refuses a prompt that does not continue what it has seen. PUBLIC.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "agent/llm/language_model.h"

namespace skein::agent {

struct ScriptedReply {
    std::string text{};       ///< literal texts of control tokens become those tokens
    bool end_of_turn = true;  ///< add <|im_end|>, or the eos token; never under a grammar
    Tokens tokens{};          ///< when not empty: exactly these, instead of text
    std::string error{};      ///< when not empty: the reply ends in this error
};

struct ScriptedOptions {
    int max_context = 32768;
    std::string chat_format = "chatml";
};

/// Threads: one agent at a time.
class ScriptedModel final : public LanguageModel {
  public:
    using Script = std::function<ScriptedReply(std::span<const Token> prompt)>;

    ScriptedModel(std::shared_ptr<const model::Tokenizer> tokenizer,
                  std::vector<ScriptedReply> replies, ScriptedOptions options = {});
    /// The reply is computed from the prompt; what the script throws is the model's error.
    ScriptedModel(std::shared_ptr<const model::Tokenizer> tokenizer, Script script,
                  ScriptedOptions options = {});

    const model::Tokenizer& tokenizer() const override { return *tokenizer_; }
    int max_context() const override { return options_.max_context; }
    std::string description() const override;
    std::string chat_format() const override { return options_.chat_format; }
    /// Logprobs are 0: the script leaves no other choice.
    boost::asio::awaitable<Completion> complete(CompletionRequest request) override;

    int replies_given() const { return replies_given_; }

  private:
    Completion answer(const CompletionRequest& request);
    Tokens planned_tokens(const ScriptedReply& reply, const CompletionRequest& request) const;

    std::shared_ptr<const model::Tokenizer> tokenizer_;
    Script script_;
    ScriptedOptions options_;
    Tokens seen_;  // the last prompt and its reply
    int replies_given_ = 0;
};

/// A tokenizer without a model: one token a byte, and the control tokens of ChatML.
std::shared_ptr<const model::Tokenizer> make_byte_tokenizer();

}  // namespace skein::agent
