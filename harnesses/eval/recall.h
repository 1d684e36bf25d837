#pragma once
// Does a model find one record among thousands? The log is evaluated once; every question branches
// off its end, and the model answers greedily. A question is right when both words are.
//
// Of layers with block selection it is also counted how often the block of the wanted word was
// among the selected when the token before that word was evaluated. The first such layer gathers
// the words of a record, the others match them: those have to find the block.

#include <cstddef>
#include <optional>
#include <vector>

#include "harnesses/eval/recall_corpus.h"
#include "model/engine.h"

namespace skein::harnesses {

struct RecallReport {
    struct Layer {
        int layer = 0;
        bool matching = false;      ///< has to find the block
        std::vector<double> found;  ///< share of answering tokens, one a KV head
    };

    int questions = 0;
    int right = 0;
    std::vector<Layer> layers;   ///< those with block selection, ascending
    double prefill_seconds = 0;  ///< of the context
    double question_seconds = 0;
    std::size_t kv_bytes = 0;  ///< of the context

    double recall() const { return static_cast<double>(right) / questions; }
    /// The smallest share of all matching layers and KV heads; nothing without such a layer.
    std::optional<double> block_recall() const;
};

/// Throws: UsageError when the model was not trained for this task; model::Error when the corpus
/// does not fit its context or memory.
RecallReport evaluate_recall(const model::Engine& engine, const RecallCorpus& corpus,
                             model::PrefillProgress* progress = nullptr);

}  // namespace skein::harnesses
