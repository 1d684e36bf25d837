#include "agent/chat/schema_grammar.h"

#include <fmt/format.h>

#include <boost/json/serialize.hpp>
#include <string>
#include <vector>

#include "agent/chat/schema_rules.h"
#include "model/error.h"
#include "tools/schema.h"

namespace skein::agent {
namespace {

namespace json = boost::json;
using model::Grammar;
using Node = Grammar::Node;

/// Compact JSON.
class JsonWriter {
  public:
    explicit JsonWriter(Grammar::Builder& builder) : builder_(builder) {}

    Node add(const json::object& schema, const std::string& where, int nesting) {
        check_nesting(where, nesting);
        if (has_listed_values(schema)) return values(schema, where);
        const std::string_view type = type_of(schema);
        if (type == "object") return object(schema, where, nesting);
        if (type == "array") return array(schema, where, nesting);
        if (type == "string") {
            const SizeRange range = length_of(schema, where);
            return builder_.json_string({range.min, range.max});
        }
        if (type == "integer" || type == "number") {
            return add_number(builder_, schema, type == "integer", where);
        }
        if (type == "boolean") return builder_.choice({"true", "false"});
        if (type == "null") return builder_.literal("null");
        return builder_.json_value(kFreeDepth);
    }

    static void check_nesting(const std::string& where, int nesting) {
        if (nesting <= kMaxNesting) return;
        refuse_schema(where, fmt::format("nested deeper than {}", kMaxNesting));
    }

  private:
    Node values(const json::object& schema, const std::string& where) {
        std::vector<std::string> texts;
        for (const json::value& value : listed_values(schema, where)) {
            texts.push_back(json::serialize(value));
        }
        return builder_.choice(std::move(texts));
    }

    Node array(const json::object& schema, const std::string& where, int nesting) {
        const SizeRange range = items_of(schema, where);
        const json::value* items = schema.if_contains("items");
        const Node item = items ? add(items->get_object(), where + "/items", nesting + 1)
                                : builder_.json_value(kFreeDepth);
        const Node comma = builder_.literal(",");
        const Node list = builder_.repeat(item, comma, range.min, range.max);
        return builder_.sequence({builder_.literal("["), list, builder_.literal("]")});
    }

    Node object(const json::object& schema, const std::string& where, int nesting) {
        if (is_free_object(schema)) return add_free_object(builder_);
        std::vector<Grammar::Builder::Member> members;
        if (const json::value* properties = schema.if_contains("properties")) {
            for (const auto& [name, rule] : properties->get_object()) {
                const std::string place = where + "/" + std::string(name);
                const Node value = add(rule.get_object(), place, nesting + 1);
                members.push_back({std::string(name), value, is_required(schema, name)});
            }
        }
        return builder_.json_object(std::move(members));
    }

    Grammar::Builder& builder_;
};

/// Elements with a control token in front of every tag; scalars are their own text.
class ElementWriter {
  public:
    ElementWriter(Grammar::Builder& builder, model::Token tag) : builder_(builder), tag_(tag) {}

    Node add(const json::object& schema, const std::string& where, int nesting) {
        JsonWriter::check_nesting(where, nesting);
        if (has_listed_values(schema)) return values(schema, where);
        const std::string_view type = type_of(schema);
        if (type == "object") {
            return is_free_object(schema) ? add_free_object(builder_)
                                          : members(schema, where, nesting);
        }
        if (type == "array") return array(schema, where, nesting);
        if (type == "string") {
            const SizeRange range = length_of(schema, where);
            return builder_.raw_text({range.min, range.max});
        }
        return JsonWriter(builder_).add(schema, where, nesting);
    }

    Node members(const json::object& schema, const std::string& where, int nesting) {
        std::vector<Grammar::Builder::Member> members;
        if (const json::value* properties = schema.if_contains("properties")) {
            for (const auto& [name, rule] : properties->get_object()) {
                const std::string place = where + "/" + std::string(name);
                const Node value = add(rule.get_object(), place, nesting + 1);
                members.push_back({std::string(name), value, is_required(schema, name)});
            }
        }
        return builder_.elements(tag_, std::move(members));
    }

  private:
    Node values(const json::object& schema, const std::string& where) {
        std::vector<std::string> texts;
        bool empty = false;
        for (const json::value& value : listed_values(schema, where)) {
            std::string text = element_text(value);
            if (text.empty()) {
                empty = true;
            } else {
                texts.push_back(std::move(text));
            }
        }
        if (texts.empty()) return builder_.literal("");
        const Node choice = builder_.choice(std::move(texts));
        return empty ? builder_.optional(choice) : choice;
    }

    Node array(const json::object& schema, const std::string& where, int nesting) {
        const SizeRange range = items_of(schema, where);
        const json::value* items = schema.if_contains("items");
        const Node value = items ? add(items->get_object(), where + "/items", nesting + 1)
                                 : builder_.json_value(kFreeDepth);
        const Node tag = builder_.token(tag_);
        const Node item = builder_.sequence(
            {tag, builder_.literal("<item>"), value, tag, builder_.literal("</item>")});
        return builder_.repeat(item, builder_.literal(""), range.min, range.max);
    }

    Grammar::Builder& builder_;
    model::Token tag_;
};

void check(const json::object& schema) {
    if (const auto violation = tools::check_schema(schema)) {
        throw model::Error("schema: " + *violation);
    }
}

}  // namespace

model::Grammar::Node add_schema(model::Grammar::Builder& builder, const json::object& schema) {
    check(schema);
    return JsonWriter(builder).add(schema, "", 0);
}

model::Grammar::Node add_argument_elements(model::Grammar::Builder& builder,
                                           const json::object& schema, model::Token tag) {
    check(schema);
    return ElementWriter(builder, tag).members(schema, "", 0);
}

std::string element_text(const json::value& value) {
    if (const json::string* text = value.if_string()) return std::string(*text);
    return json::serialize(value);
}

}  // namespace skein::agent
