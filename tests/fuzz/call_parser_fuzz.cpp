// Replies of any bytes: the parser ends, and every call it reports has valid JSON from the reply.

#include <boost/json/parse.hpp>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "agent/chat/call_parser.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view bytes(reinterpret_cast<const char*>(data), size);
    for (const bool opened : {false, true}) {
        const auto reply = skein::agent::parse_hermes_reply(bytes, opened);
        for (const auto& call : reply.calls) {
            boost::system::error_code error;
            boost::json::parse_options options;
            options.max_depth = 64;
            boost::json::parse(call.arguments, error, {}, options);
            if (error || bytes.find(call.arguments) == std::string_view::npos) std::abort();
        }
    }
    return 0;
}
