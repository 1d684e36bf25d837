#pragma once
// Broken invariants stop the program; they are the caller's bug, never bad input.

#include <source_location>

namespace skein::model {

/// Prints the location and `why`, then aborts, when `condition` is false. On in all builds.
void expect(bool condition, const char* why,
            std::source_location where = std::source_location::current());

}  // namespace skein::model
