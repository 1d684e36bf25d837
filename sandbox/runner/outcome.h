#pragma once
// Numbers of sandbox::Outcome as the runner knows them, without the library's headers.

#include <cstdint>

namespace skein::sandbox::runner {

enum class Code : std::uint32_t {
    exited, signalled, timed_out, out_of_memory, output_limit, disk_limit, killed, setup_failed
};

/// Where init lies inside.
constexpr char kInitPath[] = "/run/skein/init";

}  // namespace skein::sandbox::runner
