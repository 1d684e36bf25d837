#pragma once
// What a bound model consists of: bytes and parameters by part.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "model/config.h"
#include "model/load/weights.h"

namespace skein::model {

struct PartSize {
    std::string_view name;  ///< "experts", "attention" ...
    std::uint64_t parameters = 0;
    std::uint64_t bytes = 0;  ///< as stored in the file
    std::map<std::string_view, std::uint64_t> bytes_by_type;
};

struct Inventory {
    std::vector<PartSize> parts;  ///< those that occur, in the order of the forward pass
    std::uint64_t parameters = 0;
    std::uint64_t bytes = 0;
    std::uint64_t scale_bytes = 0;  ///< of 8-bit weights, not counted as parameters
    /// Parameters that one token uses: all but the experts that are not chosen.
    std::uint64_t active_parameters = 0;
};

/// Requires: `weights` were bound from a file with `config`, converted or not.
Inventory take_inventory(const ModelConfig& config, const Weights& weights);

}  // namespace skein::model
