#pragma once
// The store's exception: what could not be read or written, where, and what to do.

#include <stdexcept>

namespace skein::agent::store {

class Error : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

/// The recorded run and its re-run differ, or the record cannot be replayed.
class Divergence : public Error {
  public:
    using Error::Error;
};

}  // namespace skein::agent::store
