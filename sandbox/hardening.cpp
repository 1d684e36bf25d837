#include "sandbox/hardening.h"

#include <sys/prctl.h>
#include <sys/resource.h>

namespace skein::sandbox {

void harden_this_process() {
    const rlimit none{0, 0};
    setrlimit(RLIMIT_CORE, &none);
    prctl(PR_SET_DUMPABLE, 0);
}

}  // namespace skein::sandbox
