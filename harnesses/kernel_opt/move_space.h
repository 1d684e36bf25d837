#pragma once
// The legal changes of a kernel as dimensions with values, and the readable C++ each point stands
// for.

#include <string>
#include <string_view>
#include <vector>

namespace skein::harnesses {

struct Dimension {
    std::string name;                 ///< e.g. "tile_m"
    std::string help;                 ///< one line for the model and the report
    std::vector<std::string> values;  ///< in an order that means something; [0] is the anchor's way
};

/// A point of the space: one value index a dimension. All zeros is the anchor's algorithm.
using Configuration = std::vector<int>;

struct Move {
    int dimension = 0;
    int value = 0;
};

class KernelGenerator {
  public:
    virtual ~KernelGenerator() = default;
    virtual std::string_view task_id() const = 0;
    virtual const std::vector<Dimension>& dimensions() const = 0;
    /// False for combinations that mean nothing or cannot be generated (e.g. a tile that does not
    /// divide into vectors).
    virtual bool legal(const Configuration& configuration) const = 0;
    /// Plain readable C++ with a comment that lists the choices. Requires: legal(configuration).
    virtual std::string source(const Configuration& configuration) const = 0;
    /// Compiler flags this point adds; each is in the task's allowed_flags.
    virtual std::vector<std::string> flags(const Configuration& configuration) const = 0;
};

/// The generator of this task, or nullptr. Generators live as long as the program.
const KernelGenerator* find_generator(std::string_view task_id);
std::vector<const KernelGenerator*> all_generators();

/// Every single change of `from` that is legal, ordered by dimension and value.
std::vector<Move> legal_moves(const KernelGenerator& generator, const Configuration& from);
std::string describe(const KernelGenerator& generator, const Configuration& configuration);
std::string describe(const KernelGenerator& generator, const Move& move);

}  // namespace skein::harnesses
