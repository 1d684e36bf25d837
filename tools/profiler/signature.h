#pragma once
// How a kernel with a C entry is called: its arguments as data. PUBLIC.

#include <boost/json/value.hpp>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace skein::tools {

enum class ElementType { f32, f64, i8, u8, i32, u32, i64 };
std::size_t element_bytes(ElementType type);

struct KernelArgument {
    enum class Role { input, output, inout, size };
    std::string name;
    Role role = Role::input;
    ElementType type = ElementType::f32;  ///< for size arguments: always i64, passed by value
    std::string count;  ///< buffers: element count as an expression over the sizes, e.g. "m * k"
};

/// `extern "C" void entry(arguments...)`: inputs are `const T*`, outputs `T*`, sizes `int64_t`.
/// Buffers are 64-byte aligned at least.
struct KernelSignature {
    std::string entry;
    std::vector<KernelArgument> arguments;
};

using Sizes = std::map<std::string, std::int64_t>;

/// From {"entry": "...", "arguments": [{"name","role","type","count"}]}.
/// Throws: std::runtime_error.
KernelSignature parse_signature(const boost::json::value& json);

/// Evaluates + - * / % ( ) min(a,b) max(a,b) ceil_div(a,b) over integer names and constants.
/// Throws: std::runtime_error for an unknown name, bad syntax, overflow or division by zero.
double evaluate_expression(std::string_view expression, const Sizes& sizes);

}  // namespace skein::tools
