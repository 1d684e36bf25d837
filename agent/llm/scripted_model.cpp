#include "agent/llm/scripted_model.h"

#include <fmt/format.h>

#include <algorithm>

#include "agent/chat/call_parser.h"
#include "model/error.h"

namespace skein::agent {

namespace {

ScriptedModel::Script play(std::vector<ScriptedReply> replies) {
    return [replies = std::move(replies), next = std::size_t{0}](std::span<const Token>) mutable {
        if (next == replies.size()) {
            throw model::Error(fmt::format("the script has only {} replies", replies.size()));
        }
        return replies[next++];
    };
}

}  // namespace

ScriptedModel::ScriptedModel(std::shared_ptr<const model::Tokenizer> tokenizer,
                             std::vector<ScriptedReply> replies, ScriptedOptions options)
    : ScriptedModel(std::move(tokenizer), play(std::move(replies)), std::move(options)) {}

ScriptedModel::ScriptedModel(std::shared_ptr<const model::Tokenizer> tokenizer, Script script,
                             ScriptedOptions options)
    : tokenizer_(std::move(tokenizer)), script_(std::move(script)), options_(std::move(options)) {}

std::string ScriptedModel::description() const {
    return fmt::format("scripted; tokenizer {:016x}", tokenizer_->fingerprint());
}

boost::asio::awaitable<Completion> ScriptedModel::complete(CompletionRequest request) {
    co_return answer(request);
}

Tokens ScriptedModel::planned_tokens(const ScriptedReply& reply,
                                     const CompletionRequest& request) const {
    if (!reply.tokens.empty()) return reply.tokens;
    Tokens tokens = tokenizer_->encode_with_specials(reply.text);
    auto end = tokenizer_->find_special("<|im_end|>");
    if (!end) end = tokenizer_->eos();
    if (reply.end_of_turn && !request.grammar && end) tokens.push_back(*end);
    return tokens;
}

Completion ScriptedModel::answer(const CompletionRequest& request) {
    const auto prompt = request.prompt;
    if (prompt.size() < seen_.size() || !std::equal(seen_.begin(), seen_.end(), prompt.begin())) {
        throw model::Error(fmt::format(
            "the prompt of {} tokens does not continue the {} seen before: a log may only grow",
            prompt.size(), seen_.size()));
    }
    const auto window = static_cast<std::int64_t>(options_.max_context);
    if (static_cast<std::int64_t>(prompt.size()) >= window) {
        throw model::Error(fmt::format("the prompt has {} tokens, the context {}", prompt.size(),
                                       options_.max_context));
    }
    const ScriptedReply reply = script_(prompt);
    const Tokens planned = planned_tokens(reply, request);
    ++replies_given_;

    Completion out;
    out.reused_tokens = static_cast<std::int64_t>(seen_.size());
    out.evaluated_tokens = static_cast<std::int64_t>(prompt.size() - seen_.size());
    out.rng_position = prompt.size();
    std::optional<model::GrammarState> grammar;
    if (request.grammar) grammar.emplace(request.grammar);
    const auto room = std::min<std::int64_t>(
        request.max_tokens, window - static_cast<std::int64_t>(prompt.size()));
    bool ended = false;
    for (const Token token : planned) {
        if (static_cast<std::int64_t>(out.tokens.size()) >= room) break;
        const bool legal = !grammar || (tokenizer_->is_special(token)
                                            ? grammar->advance_token(token)
                                            : grammar->advance(tokenizer_->token_bytes(token)));
        if (!legal) {
            throw model::Error(fmt::format("the scripted reply leaves the grammar after \"{}\"",
                                           escape_bytes(tokenizer_->decode(out.tokens))));
        }
        out.tokens.push_back(token);
        if (request.on_token) request.on_token(token);
        if (grammar && grammar->dead_end()) out.finish = FinishReason::grammar_complete;
        ended = out.finish == FinishReason::grammar_complete ||
                std::ranges::find(request.stop_tokens, token) != request.stop_tokens.end();
        if (ended) break;
    }
    // A model that neither stopped nor completed its grammar would have gone on to the limit.
    if (!ended) out.finish = FinishReason::length;
    if (!reply.error.empty()) {
        out.finish = FinishReason::error;
        out.error = reply.error;
    }
    out.logprobs.assign(out.tokens.size(), 0.0F);
    out.origins.assign(out.tokens.size(), Origin::sampled);
    seen_.assign(prompt.begin(), prompt.end());
    seen_.insert(seen_.end(), out.tokens.begin(), out.tokens.end());
    return out;
}

std::shared_ptr<const model::Tokenizer> make_byte_tokenizer() {
    model::Vocabulary vocabulary;
    vocabulary.pre_tokenizer = "gpt2";
    for (int byte = 0; byte < 256; ++byte) {
        vocabulary.texts.emplace_back(1, static_cast<char>(byte));
        vocabulary.types.push_back(model::TokenType::normal);
    }
    for (const char* text : {"<|endoftext|>", "<|im_start|>", "<|im_end|>"}) {
        vocabulary.texts.emplace_back(text);
        vocabulary.types.push_back(model::TokenType::control);
    }
    vocabulary.eos = static_cast<Token>(vocabulary.texts.size() - 1);
    return std::make_shared<const model::Tokenizer>(std::move(vocabulary));
}

}  // namespace skein::agent
