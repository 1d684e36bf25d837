#pragma once
// Broken invariants stop the program; they are the caller's bug, never bad input.

namespace skein::model {

/// Prints the caller's location and `why`, then aborts, when `condition` is false, in all builds.
/// The builtins are std::source_location for compilers whose library lacks it (clang 14).
void expect(bool condition, const char* why, const char* file = __builtin_FILE(),
            int line = __builtin_LINE());

}  // namespace skein::model
