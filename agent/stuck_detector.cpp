#include "agent/stuck_detector.h"

#include <utility>

namespace skein::agent {

void StuckDetector::observe_call(std::string_view name, std::string_view arguments,
                                 std::string_view result) {
    // Lengths first: without them two different triples could join to the same text.
    std::string action = std::to_string(name.size()) + ' ' + std::to_string(arguments.size()) + ' ';
    action.append(name).append(arguments).append(result);
    observe(std::move(action));
}

void StuckDetector::observe_nothing_run() { observe({}); }

void StuckDetector::observe(std::string action) {
    repeats_ = repeats_ > 0 && action == last_ ? repeats_ + 1 : 1;
    last_ = std::move(action);
}

}  // namespace skein::agent
