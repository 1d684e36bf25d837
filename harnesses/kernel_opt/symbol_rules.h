#pragma once
// What a built candidate may import and define, judged from its binary rather than its source.

#include <optional>
#include <string>
#include <vector>

#include "harnesses/kernel_opt/verdict.h"
#include "tools/profiler/elf_symbols.h"

namespace skein::harnesses {

/// A verdict other than ok, with its reason.
struct Rejection {
    VerdictStatus status = VerdictStatus::forbidden;
    std::string hack;
    std::string message;
};

/// `forbidden` as in task.json: names, a trailing * stands for any suffix. Threads, clocks and
/// early exits are named as the hack they are.
std::optional<Rejection> check_symbols(const tools::ElfSymbols& symbols,
                                       const std::vector<std::string>& forbidden);

}  // namespace skein::harnesses
