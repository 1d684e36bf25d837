#include <fmt/format.h>

#include "tools/builtin.h"
#include "tools/function_tool.h"
#include "tools/lines.h"
#include "tools/text.h"

namespace skein::tools {
namespace {

constexpr std::size_t kMaxShown = 1000;

ToolSpec make_spec() {
    ToolSpec spec;
    spec.name = "list_dir";
    spec.description =
        "Lists one directory of the workspace, sorted: names with their size, directories with a "
        "slash, links with "
        "@. Names with unusual characters are shown as JSON strings.";
    spec.parameters = {
        {"type", "object"},
        {"properties",
         {{"path",
           {{"type", "string"}, {"description", "relative to the workspace"}, {"default", "."}}}}},
        {"additionalProperties", false}};
    spec.effect = Effect::reads;
    return spec;
}

ToolResult list(const Workspace& workspace, const boost::json::object& arguments) {
    const std::vector<Workspace::Entry> entries = workspace.list(string_or(arguments, "path", "."));
    std::string text;
    for (std::size_t i = 0; i < std::min(entries.size(), kMaxShown); ++i) {
        const Workspace::Entry& entry = entries[i];
        text += shown_name(entry.name);
        switch (entry.kind) {
            case 'd':
                text += "/\n";
                break;
            case 'l':
                text += "@ (link)\n";
                break;
            case 'o':
                text += " (special)\n";
                break;
            default:
                text += fmt::format("  {}\n", counted(entry.bytes, "byte"));
        }
    }
    if (entries.empty()) text = "[the directory is empty]\n";
    if (entries.size() > kMaxShown) {
        text += fmt::format("[{} of {} entries shown; narrow it down with find_files]\n", kMaxShown,
                            entries.size());
    }
    return {ToolStatus::ok, std::move(text), {{"entries", entries.size()}}};
}

}  // namespace

std::unique_ptr<Tool> make_list_dir_tool(const Workspace& workspace) {
    return make_function_tool(make_spec(), [&workspace](const boost::json::object& arguments) {
        return list(workspace, arguments);
    });
}

}  // namespace skein::tools
