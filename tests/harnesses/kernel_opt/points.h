#pragma once
// Walks through a move space.

#include <vector>

#include "harnesses/kernel_opt/move_space.h"

namespace skein::testing {

/// All legal configurations; the last dimension changes fastest.
inline std::vector<harnesses::Configuration> every_legal_point(
    const harnesses::KernelGenerator& generator) {
    const std::vector<harnesses::Dimension>& dimensions = generator.dimensions();
    std::vector<harnesses::Configuration> points;
    harnesses::Configuration point(dimensions.size(), 0);
    while (true) {
        if (generator.legal(point)) points.push_back(point);
        std::size_t at = dimensions.size();
        while (at > 0) {
            --at;
            if (++point[at] < static_cast<int>(dimensions[at].values.size())) break;
            point[at] = 0;
            if (at == 0) return points;
        }
    }
}

}  // namespace skein::testing
