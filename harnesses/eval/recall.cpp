#include "harnesses/eval/recall.h"

#include <algorithm>
#include <chrono>

namespace skein::harnesses {
namespace {

using model::Session;
using model::Token;

/// Questions asked in one pass over the weights. Each branch holds its own copy of the token ids.
constexpr std::size_t kTogether = 16;

double seconds_since(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

Token likeliest(const Session& session) {
    const model::Logits logits = session.logits();
    return static_cast<Token>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

/// Counts over all questions, as RecallReport::Layer holds shares.
class BlockCounter {
  public:
    explicit BlockCounter(const model::ModelConfig& config) : config_(config) {
        for (int i = 0; i < config.n_layers(); ++i) {
            const model::LayerConfig& layer = config.layers[static_cast<std::size_t>(i)];
            if (layer.attention != model::AttentionKind::msa) continue;
            layers_.push_back({i, !layers_.empty(), std::vector<double>(kv_heads(layer), 0.0)});
        }
    }

    void add(const RecallQuestion& question, const Session& session, int prompt_end) {
        for (const model::Choices& choices : session.choices()->read()) {
            const int word = choices.position - (prompt_end - 1);  // 0: x comes next, 1: y
            if (word < 0 || word > 1) continue;
            ++answering_tokens_;
            const int block = question.value_position(word) / config_.msa.block_tokens;
            for (const model::Choices::Layer& chosen : choices.layers) count(chosen, block);
        }
    }

    std::vector<RecallReport::Layer> shares() const {
        std::vector<RecallReport::Layer> shares = layers_;
        for (RecallReport::Layer& layer : shares)
            for (double& found : layer.found) found /= std::max(1, answering_tokens_);
        return shares;
    }

  private:
    static std::size_t kv_heads(const model::LayerConfig& layer) {
        return static_cast<std::size_t>(layer.n_kv_heads);
    }

    void count(const model::Choices::Layer& chosen, int block) {
        const auto layer =
            std::find_if(layers_.begin(), layers_.end(),
                         [&](const RecallReport::Layer& l) { return l.layer == chosen.layer; });
        if (layer == layers_.end()) return;
        for (std::size_t head = 0; head < chosen.blocks.size(); ++head) {
            const auto& blocks = chosen.blocks[head];
            layer->found[head] += std::binary_search(blocks.begin(), blocks.end(), block) ? 1 : 0;
        }
    }

    const model::ModelConfig& config_;
    std::vector<RecallReport::Layer> layers_;
    int answering_tokens_ = 0;
};

/// Asks some questions at once. Returns how many were answered rightly.
int ask(const Session& log, std::span<const RecallQuestion> questions, BlockCounter& blocks) {
    std::vector<Session> branches;
    for (std::size_t i = 0; i < questions.size(); ++i) branches.push_back(log.fork());
    std::vector<Session*> together;
    for (Session& branch : branches) together.push_back(&branch);
    model::Tokens next(questions.size());
    for (std::size_t word = 0; word < questions[0].prompt.size(); ++word) {
        for (std::size_t i = 0; i < questions.size(); ++i) next[i] = questions[i].prompt[word];
        decode_together(together, next);
    }
    const int prompt_end = branches[0].size();
    std::transform(branches.begin(), branches.end(), next.begin(), likeliest);
    decode_together(together, next);
    int right = 0;
    for (std::size_t i = 0; i < questions.size(); ++i) {
        const auto& answer = questions[i].answer;
        right += next[i] == answer[0] && likeliest(branches[i]) == answer[1] ? 1 : 0;
        blocks.add(questions[i], branches[i], prompt_end);
    }
    return right;
}

}  // namespace

std::optional<double> RecallReport::block_recall() const {
    std::optional<double> smallest;
    for (const Layer& layer : layers) {
        if (!layer.matching) continue;
        for (const double found : layer.found) smallest = std::min(smallest.value_or(1), found);
    }
    return smallest;
}

RecallReport evaluate_recall(const model::Engine& engine, const RecallCorpus& corpus,
                             model::PrefillProgress* progress) {
    check_recall_vocabulary(engine.tokenizer());
    model::SessionOptions options;
    options.max_context = static_cast<int>(corpus.context.size()) + kQuestionTokens;
    options.choices = model::ChoiceRecording::steps;
    Session log = engine.new_session(options);
    RecallReport report;
    report.questions = static_cast<int>(corpus.questions.size());
    const auto prefill_start = std::chrono::steady_clock::now();
    log.sync(corpus.context, progress);
    report.prefill_seconds = seconds_since(prefill_start);
    report.kv_bytes = log.kv_bytes();

    BlockCounter blocks(engine.config());
    const auto questions_start = std::chrono::steady_clock::now();
    const std::span<const RecallQuestion> all(corpus.questions);
    for (std::size_t at = 0; at < all.size(); at += kTogether)
        report.right += ask(log, all.subspan(at, std::min(kTogether, all.size() - at)), blocks);
    report.question_seconds = seconds_since(questions_start);
    report.layers = blocks.shares();
    return report;
}

}  // namespace skein::harnesses
