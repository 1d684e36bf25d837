#include "model/expect.h"

#include <cstdio>
#include <cstdlib>

namespace skein::model {

void expect(bool condition, const char* why, const char* file, int line) {
    if (condition) return;
    std::fprintf(stderr, "%s:%d: broken invariant: %s\n", file, line, why);
    std::abort();
}

}  // namespace skein::model
