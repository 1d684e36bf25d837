#include <fmt/format.h>

#include "tools/builtin.h"
#include "tools/function_tool.h"
#include "tools/lines.h"
#include "tools/replacement.h"
#include "tools/text.h"

namespace skein::tools {
namespace {

ToolSpec make_spec() {
    ToolSpec spec;
    spec.name = "edit_file";
    spec.description =
        "Replaces one piece of text in a file of the workspace. old_text must be in the file "
        "exactly once, white space "
        "included (copy it from read_file without the line numbers); new_text is inserted "
        "literally. Line ends, "
        "byte-order mark and mode of the file are kept.";
    spec.parameters = {
        {"type", "object"},
        {"properties",
         {{"path",
           {{"type", "string"}, {"minLength", 1}, {"description", "relative to the workspace"}}},
          {"old_text",
           {{"type", "string"}, {"description", "the text to replace, one or more lines"}}},
          {"new_text", {{"type", "string"}, {"description", "what stands there afterwards"}}},
          {"replace_all",
           {{"type", "boolean"},
            {"description", "replace every occurrence"},
            {"default", false}}}}},
        {"required", {"path", "old_text", "new_text"}},
        {"additionalProperties", false}};
    spec.effect = Effect::write;
    return spec;
}

ToolResult edit(const Workspace& workspace, const boost::json::object& arguments) {
    const std::string_view path = string_or(arguments, "path", "");
    const Workspace::File file = workspace.read_file(path);
    if (is_binary(file.bytes)) {
        return {ToolStatus::failed,
                quote(path, 300) + " holds NUL bytes: not a text file, not edited",
                {}};
    }
    const Replacement done = replace_text(file.bytes, string_or(arguments, "old_text", ""),
                                          string_or(arguments, "new_text", ""),
                                          flag_or(arguments, "replace_all", false));
    if (!done.content) {
        return {ToolStatus::failed,
                fmt::format("{} was not edited: {}", shown_name(path), done.problem),
                {}};
    }
    workspace.write(path, *done.content, &file.stamp);
    const std::string more = done.lines.size() > 1 ? ", first at" : " at";
    std::string text =
        fmt::format("edited {}: {}{} line {}\n{}", shown_name(path),
                    counted(done.lines.size(), "replacement"), more, done.lines.front(), done.diff);
    return {ToolStatus::ok,
            std::move(text),
            {{"replacements", done.lines.size()}, {"bytes", done.content->size()}}};
}

}  // namespace

std::unique_ptr<Tool> make_edit_file_tool(const Workspace& workspace) {
    return make_function_tool(make_spec(), [&workspace](const boost::json::object& arguments) {
        return edit(workspace, arguments);
    });
}

}  // namespace skein::tools
