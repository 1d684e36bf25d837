#pragma once
// Shared by the reading and the writing half of Workspace.

#include <sys/stat.h>

#include "tools/workspace.h"

namespace skein::tools {

inline std::int64_t nanoseconds(const timespec& time) {
    return static_cast<std::int64_t>(time.tv_sec) * 1000000000 + time.tv_nsec;
}

inline Workspace::Stamp stamp_of(const struct stat& info) {
    return {static_cast<std::uint64_t>(info.st_dev), static_cast<std::uint64_t>(info.st_ino),
            static_cast<std::uint64_t>(info.st_size), nanoseconds(info.st_mtim),
            nanoseconds(info.st_ctim)};
}

}  // namespace skein::tools
