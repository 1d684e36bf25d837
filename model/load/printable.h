#pragma once
// Text from foreign files made safe for messages and terminals.

#include <cstddef>
#include <string>
#include <string_view>

namespace skein::model {

/// Replaces control bytes (a line feed becomes "\n") and cuts after `max_bytes`, saying so.
std::string printable(std::string_view text, std::size_t max_bytes = 80);

}  // namespace skein::model
