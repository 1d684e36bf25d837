#pragma once
// A kernel task: one directory, language-neutral, with a C ABI.
//
//   tasks/<id>/task.json     everything below; unknown keys are errors
//              prompt.md     what the agent reads: semantics, shapes, rules
//              abi.h         the extern "C" entry
//              anchor.cc     the frozen naive kernel; its SHA-256 is in task.json
//              reference.cc  oracle in double or exact integers:
//                  extern "C" void skein_reference(const int64_t* sizes, const void* const* inputs,
//                                                  void* const* outputs);
//                            sizes in the order of `axes`; inputs and outputs in argument order,
//                            each output f64 when the kernel's is floating point, the same type
//                            otherwise
//              gen.cc        inputs from a secret seed:
//                  extern "C" void skein_generate(const int64_t* sizes, uint64_t seed,
//                                                 const char* distribution, void* const* inputs);
//              start/        editable files for the agent (a copy of the anchor)
//              visible.json  public cases: {"cases": [{"name", "sizes", "distribution", "timed"}]}
//              generator.cpp the move space's code generator (compiled into skein)
//              hidden/       hidden.json (held-out cases), cheats/*.cc, known_good.cc
//
// gen.cc, reference.cc and every candidate are single translation units that include only system
// headers: they can be compiled from their text alone. gen.cc aborts on an unknown distribution.

#include <filesystem>
#include <string>
#include <vector>

#include "tools/profiler/signature.h"

namespace skein::harnesses {

struct KernelCase {
    std::string name;
    tools::Sizes sizes;
    std::string distribution;  ///< understood by gen.cc
    bool timed = false;        ///< also a benchmark shape
};

/// Error of an output element: |got - want| / row scale, where the row scale is the root mean
/// square of the oracle's row (`row` elements). Accepted up to
/// max(noise_factor * noise, c * eps * sqrt(k)), `noise` being the anchor's own error on the same
/// inputs. With `exact`, every element must equal the oracle's, floats too.
struct Tolerance {
    bool exact = false;
    double c = 8;
    double noise_factor = 4;
    std::string k = "1";    ///< reduction length, an expression over the sizes
    std::string row = "1";  ///< elements that share one scale, an expression over the sizes
};

/// What the authors of the task measured, for orientation; never a denominator.
struct KnownResult {
    double best_speedup = 0;        ///< best point of the move space against the anchor
    double flags_only_speedup = 0;  ///< the anchor's source with the best allowed flags
    std::string machine, date;
};

struct KernelTask {
    std::string id, title, regime, licence, canary;
    int version = 1;
    bool control = false;  ///< no speedup is expected; shows that the harness invents none
    std::vector<std::string> tags;
    std::filesystem::path directory;
    tools::KernelSignature signature;
    std::vector<std::string> axes;  ///< names of the sizes, in order
    std::string flops, bytes;       ///< actual work of one call, expressions over the sizes
    Tolerance tolerance;
    std::string language_standard;               ///< e.g. "c++20"
    std::vector<std::string> flags;              ///< the anchor's, e.g. -O3 -march=native
    std::vector<std::string> allowed_flags;      ///< what a candidate may add
    std::vector<std::string> forbidden_symbols;  ///< a trailing * stands for any suffix
    std::vector<KernelCase> visible, hidden;
    std::string anchor_source, prompt;
    std::string anchor_sha256;
    KnownResult known;
};

/// Throws: std::runtime_error with file, key, expected and got; also for a changed anchor.
KernelTask load_task(const std::filesystem::path& directory);
/// Every task below `root`, sorted by id. Throws: std::runtime_error also when there is none.
std::vector<KernelTask> load_tasks(const std::filesystem::path& root);
/// Where this program's tasks are: <prefix>/share/skein/tasks when it is installed, else the source
/// tree it was built from. Throws: std::runtime_error naming both places when neither exists.
std::filesystem::path tasks_root();

}  // namespace skein::harnesses
