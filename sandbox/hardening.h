#pragma once
// For the process that starts sandboxes: it holds the keys, so nobody else may look into it.

namespace skein::sandbox {

/// For the process that holds keys: no core files, and no other process of the same user can read
/// its memory or environment or trace it. Call first in main. A debugger cannot attach afterwards.
void harden_this_process();

}  // namespace skein::sandbox
