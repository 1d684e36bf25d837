#pragma once
// A section of the configuration: the table of its fields drives parsing, showing and the schema.

#include <fmt/format.h>

#include "harnesses/config/codec.h"
#include "tools/text.h"

namespace skein::harnesses {

template <class S>
struct Field {
    std::string key;
    std::string help;
    std::vector<std::string> also;   ///< other spellings that are accepted
    std::vector<std::string> hints;  ///< words used elsewhere for it: not accepted, but recognised
    std::function<void(ConfigReader&, const YamlNode&, S&)> read;
    std::function<YamlNode(const S&)> write;
    boost::json::object schema;
};

template <class S, class T>
Field<S> field(std::string key, T S::*member, Codec<T> codec, std::string help,
               std::vector<std::string> hints = {}, std::vector<std::string> also = {}) {
    return {std::move(key),
            std::move(help),
            std::move(also),
            std::move(hints),
            [codec, member](ConfigReader& reader, const YamlNode& node, S& section) {
                if (auto value = codec.read(reader, node)) section.*member = std::move(*value);
            },
            [codec, member](const S& section) { return codec.write(section.*member); },
            codec.schema};
}

template <class S>
struct Section {
    std::string name;  ///< how messages call it, such as "agents.NAME.limits"
    std::vector<Field<S>> fields;
    std::vector<std::string> required;
};

/// Where a key that is unknown here would be allowed: the names of sections.
std::string places_of_key(std::string_view key);
/// A default as JSON, for editors.
boost::json::value to_json(const YamlNode& node);

template <class S>
void read_key(ConfigReader& reader, const Section<S>& section, const YamlNode& key,
              const YamlNode& value, S& out, std::map<std::string, std::string>& seen) {
    std::vector<std::string> names;
    for (const Field<S>& field : section.fields) {
        names.push_back(field.key);
        const auto is = [&](const std::vector<std::string>& words) {
            return std::find(words.begin(), words.end(), key.text) != words.end();
        };
        if (field.key == key.text || is(field.also)) {
            const auto [first, fresh] = seen.emplace(field.key, key.text);
            if (!fresh) {
                reader.error(key,
                             fmt::format("'{}' and '{}' mean the same", first->second, key.text));
            }
            field.read(reader, value, out);
            return;
        }
        if (is(field.hints)) {
            reader.error(key, fmt::format("unknown key '{}' in {}", key.text, section.name),
                         field.key);
            return;
        }
    }
    const std::string elsewhere = places_of_key(key.text);
    if (!elsewhere.empty()) {
        reader.error(key, fmt::format("the key '{}' is not allowed in {}; it belongs in {}",
                                      key.text, section.name, elsewhere));
        return;
    }
    reader.error(key,
                 fmt::format("unknown key '{}' in {} (known: {})", key.text, section.name,
                             fmt::join(names, ", ")),
                 tools::nearest(key.text, names));
}

/// The section as a value of the section that holds it.
template <class S>
Codec<S> section_codec(const Section<S>& section) {
    Codec<S> codec;
    codec.read = [&section](ConfigReader& reader, const YamlNode& node) -> std::optional<S> {
        if (node.kind != YamlNode::Kind::map) {
            reader.error(node, fmt::format("{}: expected a mapping, got {}", section.name,
                                           describe(node.kind)));
            return std::nullopt;
        }
        S out;
        std::map<std::string, std::string> seen;
        for (const auto& [key, value] : node.entries)
            read_key(reader, section, key, value, out, seen);
        for (const std::string& key : section.required) {
            if (!seen.contains(key))
                reader.error(node, fmt::format("{}: the key '{}' is missing", section.name, key));
        }
        return out;
    };
    codec.write = [&section](const S& value) {
        YamlNode node;
        node.kind = YamlNode::Kind::map;
        for (const Field<S>& field : section.fields) {
            YamlNode written = field.write(value);
            if (written.kind == YamlNode::Kind::null) continue;
            node.entries.push_back({YamlNode::plain(field.key), std::move(written)});
        }
        return node;
    };
    boost::json::object properties;
    for (const Field<S>& field : section.fields) {
        boost::json::object schema = field.schema;
        schema["description"] = field.help;
        const YamlNode otherwise = field.write(S{});
        const bool has_default = std::find(section.required.begin(), section.required.end(),
                                           field.key) == section.required.end() &&
                                 otherwise.kind == YamlNode::Kind::scalar;
        if (has_default) schema["default"] = to_json(otherwise);
        properties[field.key] = schema;
        for (const std::string& name : field.also) properties[name] = schema;
    }
    codec.schema = {
        {"type", "object"}, {"properties", std::move(properties)}, {"additionalProperties", false}};
    if (!section.required.empty()) {
        codec.schema["required"] =
            boost::json::array(section.required.begin(), section.required.end());
    }
    return codec;
}

}  // namespace skein::harnesses
