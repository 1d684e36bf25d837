#pragma once
// The one exception type of this folder: what could not be done, where, expected, got.

#include <stdexcept>
#include <string>

namespace skein::model {

/// Cannot load or evaluate what was asked (file missing, bad GGUF, no memory, wrong shape).
/// The message says what, where, expected, got and, where there is one, the remedy.
class Error : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

}  // namespace skein::model
