#include "harnesses/kernel_opt/symbol_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace skein::harnesses {
namespace {

/// The language's own run-time libraries; everything else is somebody else's work.
constexpr std::array<std::string_view, 5> kAllowedLibraries{
    "libstdc++.so.6", "libm.so.6", "libgcc_s.so.1", "libc.so.6", "ld-linux-x86-64.so.2"};

struct KnownHack {
    std::string_view pattern, hack;
};
constexpr std::array<KnownHack, 12> kKnownHacks{{{"pthread_create", "background_thread"},
                                                 {"thrd_create", "background_thread"},
                                                 {"_ZNSt6thread*", "background_thread"},
                                                 {"clone*", "background_thread"},
                                                 {"fork", "background_thread"},
                                                 {"GOMP_*", "background_thread"},
                                                 {"exit", "early_exit"},
                                                 {"_exit", "early_exit"},
                                                 {"_Exit", "early_exit"},
                                                 {"quick_exit", "early_exit"},
                                                 {"clock_settime", "fake_clock"},
                                                 {"atexit", "early_exit"}}};

/// Defining one of these can only be meant for whoever measures.
constexpr std::array<std::string_view, 7> kClocks{
    "clock_gettime",   "gettimeofday",        "clock", "time", "timespec_get",
    "__clock_gettime", "__vdso_clock_gettime"};

bool matches(std::string_view name, std::string_view pattern) {
    if (!pattern.ends_with('*')) return name == pattern;
    return name.starts_with(pattern.substr(0, pattern.size() - 1));
}

}  // namespace

std::optional<Rejection> check_symbols(const tools::ElfSymbols& symbols,
                                       const std::vector<std::string>& forbidden) {
    for (const std::string& name : symbols.defines) {
        if (std::find(kClocks.begin(), kClocks.end(), name) != kClocks.end()) {
            return Rejection{VerdictStatus::hack, "fake_clock",
                             fmt::format("the kernel defines its own `{}`", name)};
        }
    }
    if (symbols.has_indirect_functions) {
        return Rejection{VerdictStatus::forbidden, "",
                         "indirect functions run code while the kernel is loaded"};
    }
    for (const std::string& library : symbols.needed) {
        if (std::find(kAllowedLibraries.begin(), kAllowedLibraries.end(), library) ==
            kAllowedLibraries.end()) {
            return Rejection{VerdictStatus::forbidden, "",
                             fmt::format("the kernel needs the library {}", library)};
        }
    }
    for (const std::string& name : symbols.imports) {
        for (const std::string& pattern : forbidden) {
            if (!matches(name, pattern)) continue;
            for (const KnownHack& known : kKnownHacks) {
                if (!matches(name, known.pattern)) continue;
                return Rejection{
                    VerdictStatus::hack, std::string(known.hack),
                    fmt::format("the kernel calls `{}`, which this task forbids", name)};
            }
            return Rejection{VerdictStatus::forbidden, "",
                             fmt::format("the kernel calls `{}`, which this task forbids", name)};
        }
    }
    return std::nullopt;
}

}  // namespace skein::harnesses
