#pragma once
// JSON from untrusted files: valid UTF-8, bounded depth, no repeated keys.

#include <cstdint>
#include <optional>
#include <string_view>

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

namespace skein::model {

/// Throws: Error with the position of the first fault; a repeated key in one object is a fault,
/// because readers disagree about which of the two values counts.
boost::json::value parse_json(std::string_view text, std::string_view where);

/// Member access that says which file and key is wrong. Nothing when the key is absent or null.
class JsonObject {
  public:
    /// Throws: Error when `value` is not an object. Lifetime: both arguments must outlive this.
    JsonObject(const boost::json::value& value, std::string_view where);

    const boost::json::object& members() const { return *object_; }
    const boost::json::value* find(std::string_view key) const;
    /// Throws: Error naming the key when the value has another type or is negative.
    std::optional<std::uint64_t> unsigned_value(std::string_view key) const;
    std::optional<double> number(std::string_view key) const;
    std::optional<bool> boolean(std::string_view key) const;
    std::optional<std::string_view> string(std::string_view key) const;

  private:
    [[noreturn]] void wrong_type(std::string_view key, const char* wanted) const;

    const boost::json::object* object_;
    std::string_view where_;
};

}  // namespace skein::model
