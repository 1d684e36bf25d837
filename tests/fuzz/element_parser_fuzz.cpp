// Replies of any bytes and marks (bytes 1, 2 and 3 stand for the control tokens): the parser ends,
// the calls it reports have arguments that are JSON, and no text appears that was not in the reply.

#include <cstdint>
#include <cstdlib>
#include <string>

#include "agent/chat/element_parser.h"
#include "tests/fuzz/element_tool.h"
#include "tools/json_arguments.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace skein;
    const agent::MarkedText reply = fuzz::marked(data, size);
    const tools::ToolSpec& spec = fuzz::element_tool();
    const tools::ToolSpec* const known[] = {&spec};
    for (const bool opened : {false, true}) {
        for (const std::size_t tools : {0, 1}) {
            const auto parsed =
                agent::parse_element_reply(reply, opened, std::span(known).first(tools));
            for (const auto& call : parsed.calls) {
                if (!tools::parse_arguments(call.arguments).object) std::abort();
            }
            for (const auto& broken : parsed.malformed) {
                if (broken.error.empty() || broken.raw.empty()) std::abort();
            }
            if (parsed.text.size() + parsed.thinking.size() > 14 * size) std::abort();
        }
    }
    return 0;
}
