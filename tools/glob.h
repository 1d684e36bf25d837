#pragma once
// File name patterns: * and ? within a name, ** across directories, [a-z], {one,other}. PUBLIC.

#include "tools/pattern.h"

namespace skein::tools {

/// A pattern for whole relative paths. Without a '/' the glob is about names at any depth, as
/// "*.cpp"; with one it is about the path from where the search starts, as "src/**/test_*.py".
/// Throws: PatternError.
Pattern make_glob(std::string_view glob);

}  // namespace skein::tools
