// Any bytes and tags (byte 1) fed to the grammar of a tool's arguments as elements: what it takes
// as a whole is one call for the parser, valid by the schema, and wherever it stands there is a way
// on.

#include <cstdint>
#include <cstdlib>
#include <memory>

#include "agent/chat/element_parser.h"
#include "agent/chat/schema_grammar.h"
#include "model/sampling/grammar.h"
#include "tests/fuzz/element_tool.h"
#include "tools/schema.h"

using namespace skein;

namespace {

constexpr model::Token kTag = 7;

void require(bool condition) {
    if (!condition) std::abort();
}

std::shared_ptr<const model::Grammar> make_grammar() {
    model::Grammar::Builder builder;
    return builder.finish(
        agent::add_argument_elements(builder, fuzz::element_tool().parameters, kTag));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const std::shared_ptr<const model::Grammar> grammar = make_grammar();
    model::GrammarState state(grammar);
    agent::MarkedText taken{"<tool_call><invoke name=\"write\">",
                            {{0, agent::Mark::tag}, {11, agent::Mark::tag}}};
    for (std::size_t i = 0; i < size; ++i) {
        const char byte = static_cast<char>(data[i]);
        if (!(data[i] == 1 ? state.advance_token(kTag) : state.advance({&byte, 1}))) break;
        if (data[i] == 1) {
            taken.marks.push_back({taken.bytes.size(), agent::Mark::tag});
        } else {
            taken.bytes.push_back(byte);
        }
    }
    require(state.complete() || !state.dead_end());
    require(state.accepts(state.forced()));
    if (const auto token = state.forced_token()) require(state.accepts_token(*token));
    if (!state.complete()) return 0;
    taken.marks.push_back({taken.bytes.size(), agent::Mark::tag});
    taken.bytes += "</invoke>";
    const tools::ToolSpec* const known[] = {&fuzz::element_tool()};
    const agent::ParsedReply reply = agent::parse_element_reply(taken, false, known);
    require(reply.calls.size() == 1 && reply.malformed.empty());
    require(!tools::validate(boost::json::parse(reply.calls[0].arguments),
                             fuzz::element_tool().parameters));
    return 0;
}
