#pragma once
// Proposes configurations: uniformly, or by Thompson sampling on a linear surrogate.
//
// The surrogate is Bayesian linear regression of log(speedup) on an intercept and one indicator a
// (dimension, value).  Each proposal draws weights from the posterior and takes the best untried
// configuration under the draw.  Source: Thompson 1933; Russo et al., "A Tutorial on Thompson
// Sampling", 2018.

#include <cstdint>
#include <optional>
#include <vector>

#include "harnesses/kernel_opt/move_space.h"

namespace skein::harnesses {

/// A small counter-based generator; the same seed gives the same search on every machine.
class SearchRng {
  public:
    explicit SearchRng(std::uint64_t seed) : state_(seed) {}
    std::uint64_t bits();
    double uniform();  ///< in [0, 1)
    double normal();
    std::size_t below(std::size_t n);  ///< in [0, n); requires n > 0

  private:
    std::uint64_t state_;
};

struct Observation {
    Configuration configuration;
    double log_speedup = 0;  ///< of a failed candidate: see kFailedLogSpeedup
};

/// What a candidate that does not compile or is wrong counts as: a heavy loss, but not so heavy
/// that one failure condemns every value it used.
constexpr double kFailedLogSpeedup = -1.0;

struct SearchOptions {
    double prior_deviation = 0.8;   ///< of a weight, in log speedup
    double noise_deviation = 0.25;  ///< interactions the linear model cannot see, and timing noise
    double uniform_share = 0.15;    ///< of proposals drawn uniformly, against a misled surrogate
    std::size_t pool = 4096;        ///< configurations considered for one proposal
};

/// All legal configurations when there are at most `limit`, else a uniform sample of that size.
std::vector<Configuration> candidate_pool(const KernelGenerator& generator, std::size_t limit,
                                          SearchRng& rng);

/// A legal configuration not in `tried`, uniformly; nothing when the space is exhausted.
std::optional<Configuration> propose_uniform(const KernelGenerator& generator,
                                             const std::vector<Configuration>& tried,
                                             SearchRng& rng);

/// A configuration not in `tried` by Thompson sampling; nothing when the space is exhausted.
std::optional<Configuration> propose_thompson(const KernelGenerator& generator,
                                              const std::vector<Observation>& observations,
                                              const std::vector<Configuration>& tried,
                                              const SearchOptions& options, SearchRng& rng);

}  // namespace skein::harnesses
