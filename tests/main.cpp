// The doctest entry shared by all test programs. Both names, because the precompiled headers hold
// the first half of the header, where the one would define the other.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>
