#pragma once
// How one kind of value is read from YAML, written back and described to editors. A configuration
// section is a table of fields made of these (config.cpp); everything else follows from the table.

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harnesses/config/yaml_tree.h"

namespace skein::harnesses {

/// Where a configuration is read from, and what was found wrong so far.
class ConfigReader {
  public:
    ConfigReader(std::string name, std::filesystem::path base)
        : name_(std::move(name)), base_(std::move(base)) {}

    /// Remembers an error and goes on, so that one run of the check shows them all.
    void error(const YamlNode& at, const std::string& message, const std::string& suggestion = {});
    /// Throws: ConfigError when there was an error.
    void finish() const;
    const std::filesystem::path& base() const { return base_; }

  private:
    struct Found {
        std::string text, suggestion;
        int line, column;
    };
    std::string name_;
    std::filesystem::path base_;
    std::vector<Found> found_;
};

template <class T>
struct Codec {
    /// Nothing after an error, which the reader then knows.
    std::function<std::optional<T>(ConfigReader&, const YamlNode&)> read;
    std::function<YamlNode(const T&)> write;
    boost::json::object schema;
};

Codec<std::string> text();        ///< kept exactly
Codec<std::string> identifier();  ///< not empty, no white space at its ends, one line
Codec<std::string> choice(std::vector<std::string> names);
Codec<double> number(double least, double most);
Codec<bool> flag();
/// "120s", "30m", "8h", "1h30m", "500ms", or seconds as a plain number.
Codec<std::chrono::milliseconds> duration();
/// "64M", "4GiB", or bytes as a plain number; K, M, G and T are powers of 1024.
Codec<std::uint64_t> byte_size();
/// Relative paths resolve against the folder of the file.
Codec<std::filesystem::path> path();
/// The same as text, except for the words in `kept`.
Codec<std::string> path_or(std::vector<std::string> kept);
/// A list, or the word `all` for the empty list.
Codec<std::vector<std::string>> names_or_all();

/// The integer of a scalar: decimal digits with an optional sign, nothing else.
std::optional<std::int64_t> read_integer(ConfigReader& reader, const YamlNode& node,
                                         std::int64_t least, std::int64_t most);

template <class T>
Codec<T> integer(std::int64_t least, std::int64_t most = std::numeric_limits<T>::max()) {
    return {[=](ConfigReader& reader, const YamlNode& node) -> std::optional<T> {
                const auto value = read_integer(reader, node, least, most);
                return value ? std::optional<T>(static_cast<T>(*value)) : std::nullopt;
            },
            [](const T& value) { return YamlNode::plain(std::to_string(value)); },
            {{"type", "integer"}, {"minimum", least}, {"maximum", most}}};
}

template <class T>
Codec<std::vector<T>> list_of(Codec<T> item) {
    return {[item](ConfigReader& reader, const YamlNode& node) -> std::optional<std::vector<T>> {
                if (node.kind != YamlNode::Kind::sequence) {
                    reader.error(node, "expected a list, got " + std::string(describe(node.kind)));
                    return std::nullopt;
                }
                std::vector<T> values;
                for (const YamlNode& element : node.items) {
                    if (auto value = item.read(reader, element))
                        values.push_back(std::move(*value));
                }
                return values;
            },
            [item](const std::vector<T>& values) {
                YamlNode node;
                node.kind = YamlNode::Kind::sequence;
                for (const T& value : values) node.items.push_back(item.write(value));
                return node;
            },
            {{"type", "array"}, {"items", item.schema}}};
}

template <class T>
Codec<std::map<std::string, T>> map_of(Codec<T> item) {
    const Codec<std::string> name = identifier();
    return {[item, name](ConfigReader& reader,
                         const YamlNode& node) -> std::optional<std::map<std::string, T>> {
                if (node.kind != YamlNode::Kind::map) {
                    reader.error(node, "expected a mapping from names, got " +
                                           std::string(describe(node.kind)));
                    return std::nullopt;
                }
                std::map<std::string, T> values;
                for (const auto& [key, element] : node.entries) {
                    const auto id = name.read(reader, key);
                    auto value = item.read(reader, element);
                    if (id && value) values.emplace(*id, std::move(*value));
                }
                return values;
            },
            [item](const std::map<std::string, T>& values) {
                YamlNode node;
                node.kind = YamlNode::Kind::map;
                for (const auto& [key, value] : values) {
                    node.entries.push_back({YamlNode::plain(key), item.write(value)});
                }
                return node;
            },
            {{"type", "object"}, {"additionalProperties", item.schema}}};
}

template <class T>
Codec<std::optional<T>> optional_of(Codec<T> item) {
    return {[item](ConfigReader& reader, const YamlNode& node) -> std::optional<std::optional<T>> {
                auto value = item.read(reader, node);
                if (!value) return std::nullopt;
                return std::optional<T>(std::move(*value));
            },
            [item](const std::optional<T>& value) {
                return value ? item.write(*value) : YamlNode();  // null: left out
            },
            item.schema};
}

}  // namespace skein::harnesses
