// Any bytes as the config.json of a model folder; only model::Error may come out.
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
        safetensors_config(value, "fuzz", false, 0);
    } catch (const Error&) {
    }
    return 0;
}
