#pragma once
// What the fuzz targets of element calls share: bytes with marks, and a tool with every kind of
// argument.

#include <boost/json.hpp>
#include <cstdint>

#include "agent/chat/element_parser.h"
#include "tools/tool.h"

namespace skein::fuzz {

/// Bytes 1, 2 and 3 are the marks; all others are text.
inline agent::MarkedText marked(const std::uint8_t* data, std::size_t size) {
    agent::MarkedText out;
    for (std::size_t i = 0; i < size; ++i) {
        if (data[i] >= 1 && data[i] <= 3) {
            out.marks.push_back({out.bytes.size(), static_cast<agent::Mark>(data[i] - 1)});
        } else {
            out.bytes.push_back(static_cast<char>(data[i]));
        }
    }
    return out;
}

inline const tools::ToolSpec& element_tool() {
    static const tools::ToolSpec spec{"write", "",
                                      boost::json::parse(R"({"type": "object", "properties": {
            "path": {"type": "string", "maxLength": 9}, "n": {"type": "integer", "minimum": -7},
            "mode": {"enum": ["a", "", 1, null, [1]]},
            "tags": {"type": "array", "maxItems": 3, "items": {"type": "string"}},
            "who": {"type": "object", "properties": {"name": {"type": "string"}, "age":
                    {"type": "number", "minimum": 0.5}}, "required": ["name"]},
            "any": {}}, "required": ["path"]})")
                                          .get_object(),
                                      tools::Effect::write};
    return spec;
}

}  // namespace skein::fuzz
