// Any bytes fed to a grammar: what it takes as a whole is JSON for a strict parser, and wherever it
// stands after legal bytes there is a way on or the sentence is complete.

#include <boost/json.hpp>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "model/sampling/grammar.h"

using namespace skein::model;

namespace {

void require(bool condition) {
    if (!condition) std::abort();
}

std::shared_ptr<const Grammar> make_grammar() {
    Grammar::Builder b;
    JsonNumberLimits real;
    real.real_minimum = -2.5;
    real.real_maximum = 1000.25;
    const auto members =
        b.json_object({{"s", b.json_string({.min_chars = 1, .max_chars = 9}), true},
                       {"i", b.json_number({.integer = true, .minimum = -7}), false},
                       {"r", b.json_number(real), false},
                       {"v", b.json_value(3), false}});
    return b.finish(b.any_of({members, b.json_value(4)}));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const std::shared_ptr<const Grammar> grammar = make_grammar();
    const std::string_view bytes(reinterpret_cast<const char*>(data), size);
    GrammarState state(grammar);
    std::size_t taken = 0;
    while (taken < size && state.advance(bytes.substr(taken, 1))) ++taken;
    require(GrammarState(grammar).accepts(bytes.substr(0, taken)));
    require(state.complete() || !state.dead_end());
    require(state.accepts(state.forced()));
    if (state.complete()) {
        boost::system::error_code error;
        boost::json::parse(bytes.substr(0, taken), error);
        require(!error.failed());
    }
    return 0;
}
