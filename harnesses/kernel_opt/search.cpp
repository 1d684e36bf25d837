#include "harnesses/kernel_opt/search.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <set>

#include "model/hash.h"

namespace skein::harnesses {
namespace {

using Matrix = std::vector<std::vector<double>>;  // square, symmetric or lower triangular

/// Feature indices that are 1 for this configuration: the intercept, then one a dimension.
std::vector<std::size_t> features(const KernelGenerator& generator, const Configuration& at) {
    std::vector<std::size_t> on{0};
    std::size_t base = 1;
    for (std::size_t d = 0; d < at.size(); ++d) {
        on.push_back(base + static_cast<std::size_t>(at[d]));
        base += generator.dimensions()[d].values.size();
    }
    return on;
}

std::size_t feature_count(const KernelGenerator& generator) {
    std::size_t n = 1;
    for (const Dimension& dimension : generator.dimensions()) n += dimension.values.size();
    return n;
}

/// Lower Cholesky factor of a positive definite matrix, in place.
void cholesky(Matrix& a) {
    const std::size_t n = a.size();
    for (std::size_t j = 0; j < n; ++j) {
        for (std::size_t k = 0; k < j; ++k) {
            for (std::size_t i = j; i < n; ++i) a[i][j] -= a[i][k] * a[j][k];
        }
        const double pivot = std::sqrt(a[j][j]);
        for (std::size_t i = j; i < n; ++i) a[i][j] /= pivot;
    }
}

std::vector<double> solve_lower(const Matrix& l, std::vector<double> b) {
    for (std::size_t i = 0; i < b.size(); ++i) {
        for (std::size_t k = 0; k < i; ++k) b[i] -= l[i][k] * b[k];
        b[i] /= l[i][i];
    }
    return b;
}

std::vector<double> solve_upper(const Matrix& l, std::vector<double> b) {
    for (std::size_t i = b.size(); i-- > 0;) {
        for (std::size_t k = i + 1; k < b.size(); ++k) b[i] -= l[k][i] * b[k];
        b[i] /= l[i][i];
    }
    return b;
}

/// One draw of the weights from the posterior.
std::vector<double> draw_weights(const KernelGenerator& generator,
                                 const std::vector<Observation>& observations,
                                 const SearchOptions& options, SearchRng& rng) {
    const std::size_t n = feature_count(generator);
    const double prior = 1 / (options.prior_deviation * options.prior_deviation);
    const double noise = 1 / (options.noise_deviation * options.noise_deviation);
    Matrix precision(n, std::vector<double>(n, 0.0));
    std::vector<double> target(n, 0.0);
    for (std::size_t i = 0; i < n; ++i) precision[i][i] = prior;
    for (const Observation& observation : observations) {
        const auto on = features(generator, observation.configuration);
        for (const std::size_t i : on) {
            for (const std::size_t j : on) precision[i][j] += noise;
            target[i] += noise * observation.log_speedup;
        }
    }
    cholesky(precision);
    std::vector<double> weights = solve_upper(precision, solve_lower(precision, target));
    std::vector<double> z(n);
    for (double& value : z) value = rng.normal();
    const std::vector<double> spread = solve_upper(precision, z);
    for (std::size_t i = 0; i < n; ++i) weights[i] += spread[i];
    return weights;
}

Configuration random_configuration(const KernelGenerator& generator, SearchRng& rng) {
    Configuration configuration;
    for (const Dimension& dimension : generator.dimensions()) {
        configuration.push_back(static_cast<int>(rng.below(dimension.values.size())));
    }
    return configuration;
}

/// Moves to the next point in mixed-radix order; false after the last one.
bool advance(const KernelGenerator& generator, Configuration& at) {
    for (std::size_t d = at.size(); d-- > 0;) {
        if (++at[d] < static_cast<int>(generator.dimensions()[d].values.size())) return true;
        at[d] = 0;
    }
    return false;
}

}  // namespace

std::uint64_t SearchRng::bits() {
    return model::next_random(state_);
}

double SearchRng::uniform() {
    return static_cast<double>(bits() >> 11) * 0x1.0p-53;
}

double SearchRng::normal() {
    const double radius = std::sqrt(-2 * std::log(1 - uniform()));
    return radius * std::cos(2 * std::numbers::pi * uniform());
}

std::size_t SearchRng::below(std::size_t n) {
    return static_cast<std::size_t>(uniform() * static_cast<double>(n));
}

std::vector<Configuration> candidate_pool(const KernelGenerator& generator, std::size_t limit,
                                          SearchRng& rng) {
    double points = 1;
    for (const Dimension& d : generator.dimensions())
        points *= static_cast<double>(d.values.size());
    std::vector<Configuration> pool;
    constexpr double kEnumerable = 200000;
    if (points <= kEnumerable) {
        Configuration at(generator.dimensions().size(), 0);
        do {
            if (generator.legal(at)) pool.push_back(at);
        } while (advance(generator, at));
    } else {
        std::set<Configuration> seen;
        for (std::size_t tries = 0; tries < limit * 50 && seen.size() < limit; ++tries) {
            const Configuration at = random_configuration(generator, rng);
            if (generator.legal(at)) seen.insert(at);
        }
        pool.assign(seen.begin(), seen.end());
    }
    while (pool.size() > limit) {
        const std::size_t victim = rng.below(pool.size());
        pool[victim] = pool.back();
        pool.pop_back();
    }
    return pool;
}

std::optional<Configuration> propose_uniform(const KernelGenerator& generator,
                                             const std::vector<Configuration>& tried,
                                             SearchRng& rng) {
    const std::set<Configuration> known(tried.begin(), tried.end());
    for (int attempt = 0; attempt < 10000; ++attempt) {
        Configuration at = random_configuration(generator, rng);
        if (generator.legal(at) && !known.contains(at)) return at;
    }
    for (Configuration& at : candidate_pool(generator, SIZE_MAX, rng)) {
        if (!known.contains(at)) return at;
    }
    return std::nullopt;
}

std::optional<Configuration> propose_thompson(const KernelGenerator& generator,
                                              const std::vector<Observation>& observations,
                                              const std::vector<Configuration>& tried,
                                              const SearchOptions& options, SearchRng& rng) {
    if (observations.size() < 2 || rng.uniform() < options.uniform_share) {
        return propose_uniform(generator, tried, rng);
    }
    const std::set<Configuration> known(tried.begin(), tried.end());
    const auto weights = draw_weights(generator, observations, options, rng);
    std::optional<Configuration> best;
    double best_value = 0;
    for (Configuration& at : candidate_pool(generator, options.pool, rng)) {
        if (known.contains(at)) continue;
        double value = 0;
        for (const std::size_t i : features(generator, at)) value += weights[i];
        if (!best || value > best_value) {
            best_value = value;
            best = std::move(at);
        }
    }
    return best;
}

}  // namespace skein::harnesses
