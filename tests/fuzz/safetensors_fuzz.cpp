// Any bytes as a safetensors file, and as the JSON files beside it; only model::Error may come out.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include <boost/json.hpp>

#include "model/error.h"
#include "model/load/json_text.h"
#include "model/load/safetensors.h"
#include "model/load/safetensors_model.h"

using namespace skein::model;

namespace {

void read_header(std::span<const std::byte> bytes) {
    try {
        std::size_t sum = 0;
        for (const SafetensorsEntry& entry : parse_safetensors(bytes, "fuzz").entries) {
            if (entry.data.empty()) continue;
            sum += static_cast<std::size_t>(entry.data.front()) +
                   static_cast<std::size_t>(entry.data.back());
        }
        if (sum == static_cast<std::size_t>(-1)) __builtin_trap();  // keeps the reads observable
    } catch (const Error&) {
    }
}

void read_folder_files(std::string_view text) {
    try {
        const boost::json::value value = parse_json(text, "fuzz");
        try {
            safetensors_config(value, "fuzz", false, 0);
        } catch (const Error&) {
        }
        tokenizer_json_vocabulary(value, value, "fuzz", 300);
    } catch (const Error&) {
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto bytes = std::as_bytes(std::span(data, size));
    read_header(bytes);
    read_folder_files({reinterpret_cast<const char*>(data), size});
    return 0;
}
