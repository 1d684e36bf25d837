#include "harnesses/kernel_opt/move_space.h"

#include <fmt/format.h>

#include <stdexcept>

#include "harnesses/kernel_opt/tasks/generators.h"

namespace skein::harnesses {

std::vector<const KernelGenerator*> all_generators() {
    return task_generators();
}

const KernelGenerator* find_generator(std::string_view task_id) {
    for (const KernelGenerator* generator : task_generators()) {
        if (generator->task_id() == task_id) return generator;
    }
    return nullptr;
}

std::vector<Move> legal_moves(const KernelGenerator& generator, const Configuration& from) {
    const std::vector<Dimension>& dimensions = generator.dimensions();
    if (from.size() != dimensions.size()) {
        throw std::invalid_argument(fmt::format("{}: a configuration has {} values, got {}",
                                                generator.task_id(), dimensions.size(),
                                                from.size()));
    }
    std::vector<Move> moves;
    for (std::size_t dimension = 0; dimension < dimensions.size(); ++dimension) {
        Configuration changed = from;
        for (std::size_t value = 0; value < dimensions[dimension].values.size(); ++value) {
            changed[dimension] = static_cast<int>(value);
            if (changed[dimension] == from[dimension] || !generator.legal(changed)) continue;
            moves.push_back({static_cast<int>(dimension), static_cast<int>(value)});
        }
    }
    return moves;
}

std::string describe(const KernelGenerator& generator, const Configuration& configuration) {
    const std::vector<Dimension>& dimensions = generator.dimensions();
    std::string text;
    for (std::size_t i = 0; i < dimensions.size(); ++i) {
        const auto value = static_cast<std::size_t>(configuration.at(i));
        if (value == 0) continue;
        text += fmt::format("{}{}={}", text.empty() ? "" : " ", dimensions[i].name,
                            dimensions[i].values.at(value));
    }
    return text.empty() ? "as the anchor" : text;
}

std::string describe(const KernelGenerator& generator, const Move& move) {
    const Dimension& dimension =
        generator.dimensions().at(static_cast<std::size_t>(move.dimension));
    return fmt::format("{}={} ({})", dimension.name,
                       dimension.values.at(static_cast<std::size_t>(move.value)), dimension.help);
}

}  // namespace skein::harnesses
