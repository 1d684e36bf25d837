// Any bytes as a tokenizer.json; only model::Error may come out.
#include <boost/json.hpp>
#include <cstdint>
#include <string_view>

#include "model/error.h"
#include "model/load/json_text.h"
#include "model/load/safetensors_model.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace skein::model;
    try {
        const boost::json::value value =
            parse_json({reinterpret_cast<const char*>(data), size}, "fuzz");
        tokenizer_json_vocabulary(value, value, "fuzz", 300);
    } catch (const Error&) {
    }
    return 0;
}
