#pragma once
// Token ids, the only currency between model and agent.

#include <cstdint>
#include <vector>

namespace skein::model {

using Token = std::int32_t;
using Tokens = std::vector<Token>;

}  // namespace skein::model
