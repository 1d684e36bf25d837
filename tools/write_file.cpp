#include <fmt/format.h>

#include <optional>

#include "tools/builtin.h"
#include "tools/function_tool.h"
#include "tools/lines.h"
#include "tools/text.h"

// The file becomes exactly the given bytes. Line ends and a byte-order mark of the old content are
// not carried over; the result says so when that changed something.

namespace skein::tools {
namespace {

ToolSpec make_spec() {
    ToolSpec spec;
    spec.name = "write_file";
    spec.description =
        "Writes a whole file of the workspace, replacing what is there; missing directories are "
        "made. The content is "
        "stored exactly as given. To change a part of a file use edit_file.";
    spec.parameters = {
        {"type", "object"},
        {"properties",
         {{"path",
           {{"type", "string"}, {"minLength", 1}, {"description", "relative to the workspace"}}},
          {"content", {{"type", "string"}, {"description", "the new content"}}}}},
        {"required", {"path", "content"}},
        {"additionalProperties", false}};
    spec.effect = Effect::idempotent_write;
    return spec;
}

std::string size_of(std::string_view bytes) {
    return fmt::format("{}, {}", counted(count_lines(bytes), "line"),
                       counted(bytes.size(), "byte"));
}

// What the old content had and the new one has not.
std::string losses(std::string_view before, std::string_view after) {
    std::string text;
    if (count_line_ends(before).crlf > 0 && count_line_ends(after).crlf == 0 &&
        count_line_ends(after).lf > 0) {
        text += "; its line ends were CRLF and are LF now";
    }
    const bool had_mark = before.substr(0, kUtf8Mark.size()) == kUtf8Mark;
    if (had_mark && after.substr(0, kUtf8Mark.size()) != kUtf8Mark)
        text += "; its byte-order mark is gone";
    return text;
}

ToolResult write(const Workspace& workspace, const boost::json::object& arguments) {
    const std::string_view path = string_or(arguments, "path", "");
    const std::string_view content = string_or(arguments, "content", "");
    std::optional<Workspace::File> old;
    if (workspace.exists(path)) {
        try {
            old = workspace.read_file(path);
        } catch (const WorkspaceError&) {
            // Too large to compare; `write` judges whether it may be replaced.
        }
    }
    const bool created = workspace.write(path, content, old ? &old->stamp : nullptr);
    std::string text =
        fmt::format("{} {}: {}", created ? "created" : "wrote", shown_name(path), size_of(content));
    if (old) text += fmt::format(" (was {}){}", size_of(old->bytes), losses(old->bytes, content));
    return {ToolStatus::ok, std::move(text), {{"created", created}, {"bytes", content.size()}}};
}

}  // namespace

std::unique_ptr<Tool> make_write_file_tool(const Workspace& workspace) {
    return make_function_tool(make_spec(), [&workspace](const boost::json::object& arguments) {
        return write(workspace, arguments);
    });
}

}  // namespace skein::tools
