#include "agent/llm/language_model.h"

namespace skein::agent {

std::string_view to_string(FinishReason reason) {
    switch (reason) {
        case FinishReason::stop: return "stop";
        case FinishReason::length: return "length";
        case FinishReason::grammar_complete: return "grammar_complete";
        case FinishReason::cancelled: return "cancelled";
        case FinishReason::error: return "error";
    }
    return "unknown";
}

}  // namespace skein::agent
