#pragma once
// What the generators of this folder share: named choices, text templates and vector helpers.
//
// Generated kernels are C++20 with GCC's vector types, so a point means the same on every x86-64
// and AArch64 machine; only streaming stores use x86 intrinsics, with a plain store elsewhere.
// Arrays of vectors with constant bounds under `#pragma GCC unroll` stay in registers at -O3.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harnesses/kernel_opt/move_space.h"

namespace skein::harnesses {

/// A configuration read by dimension name. Throws: std::logic_error for a name that is none.
class Choices {
  public:
    Choices(const std::vector<Dimension>& dimensions, const Configuration& configuration)
        : dimensions_(dimensions), configuration_(configuration) {}

    const std::string& text(std::string_view name) const;
    /// The value as a number; words such as "none" and "all" are 0.
    int number(std::string_view name) const;
    /// True unless the choice is the anchor's.
    bool changed(std::string_view name) const { return index(name) != 0; }

  private:
    int index(std::string_view name) const;
    const Dimension& dimension(std::string_view name) const;

    const std::vector<Dimension>& dimensions_;
    const Configuration& configuration_;
};

/// A generator that is a table of dimensions, a rule and a template. The dimension called "flags"
/// holds compiler flags.
class ChoiceGenerator : public KernelGenerator {
  public:
    ChoiceGenerator(std::string task_id, std::vector<Dimension> dimensions)
        : task_id_(std::move(task_id)), dimensions_(std::move(dimensions)) {}

    std::string_view task_id() const final { return task_id_; }
    const std::vector<Dimension>& dimensions() const final { return dimensions_; }
    bool legal(const Configuration& configuration) const final;
    std::string source(const Configuration& configuration) const final;
    std::vector<std::string> flags(const Configuration& configuration) const final;

  private:
    virtual bool allowed(const Choices& choices) const = 0;
    virtual std::string body(const Choices& choices) const = 0;

    std::string task_id_;
    std::vector<Dimension> dimensions_;
};

/// Replaces every @NAME@ by its value. Throws: std::logic_error for a name without a value.
std::string fill(std::string_view text,
                 const std::vector<std::pair<std::string_view, std::string>>& values);

/// Declares kWidth, Vector, load and store for vectors of `width` floats; a width of 1 makes Vector
/// a plain float, so that one template serves both.
std::string float_vectors(int width);
/// Declare sum_of and max_of, a vector's sum and its largest element.
std::string sum_of_lanes(int width);
std::string max_of_lanes(int width);
/// Declares `stream`, a store past the caches for aligned addresses, `is_aligned` and
/// `stores_done`. Needs kStreamIncludes before and float_vectors declared.
std::string streaming_store(int width);
inline constexpr const char* kStreamIncludes = R"(#ifdef __SSE2__
#include <immintrin.h>
#endif
)";
/// Declares exp_of(float) and exp_of(Vector) for arguments that are not positive; degree 5 or 6.
std::string polynomial_exp(int width, int degree);

Dimension width_dimension(std::vector<std::string> values);
Dimension flags_dimension(std::vector<std::string> values);
Dimension restrict_dimension();
Dimension store_dimension();

}  // namespace skein::harnesses
