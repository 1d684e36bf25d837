#include "model/expect.h"

#include <cstdio>
#include <cstdlib>

namespace skein::model {

void expect(bool condition, const char* why, std::source_location where) {
    if (condition) return;
    std::fprintf(stderr, "%s:%u: broken invariant in %s: %s\n", where.file_name(),
                 static_cast<unsigned>(where.line()), where.function_name(), why);
    std::abort();
}

}  // namespace skein::model
