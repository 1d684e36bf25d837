#include <fmt/format.h>

#include "tools/builtin.h"
#include "tools/function_tool.h"
#include "tools/glob.h"
#include "tools/lines.h"
#include "tools/search_scope.h"
#include "tools/text.h"

namespace skein::tools {
namespace {

constexpr std::size_t kDefaultLimit = 200, kMaxLimit = 5000;

ToolSpec make_spec() {
    ToolSpec spec;
    spec.name = "find_files";
    spec.description =
        "Finds files and directories of the workspace by name, sorted. The glob knows *, ?, [a-z], "
        "{one,other} and ** "
        "across directories; without a slash it is about names at any depth (*.cpp), with one "
        "about the path from the "
        "start of the search (src/**/test_*). Links and .git are not entered.";
    spec.parameters = {
        {"type", "object"},
        {"properties",
         {{"glob", {{"type", "string"}, {"minLength", 1}, {"maxLength", 1000}}},
          {"path", {{"type", "string"}, {"description", "where to start"}, {"default", "."}}},
          {"limit",
           {{"type", "integer"},
            {"minimum", 1},
            {"maximum", kMaxLimit},
            {"default", kDefaultLimit}}}}},
        {"required", {"glob"}},
        {"additionalProperties", false}};
    spec.effect = Effect::reads;
    return spec;
}

ToolResult find(const Workspace& workspace, const boost::json::object& arguments) {
    Pattern glob = make_glob(string_or(arguments, "glob", ""));
    const std::string_view start = string_or(arguments, "path", ".");
    const std::size_t limit = count_or(arguments, "limit", kDefaultLimit);
    const Workspace::Tree tree = search_tree(workspace, start);
    std::string text;
    std::size_t found = 0;
    for (const Workspace::Entry& entry : tree.entries) {
        if (!glob.matches(below(entry.name, start, workspace.root().native()))) continue;
        if (found++ >= limit) continue;
        text += shown_name(entry.name) + (entry.kind == 'd'   ? "/\n"
                                          : entry.kind == 'l' ? "@\n"
                                                              : "\n");
    }
    if (found == 0) text = "[no match]\n";
    if (found > limit)
        text += fmt::format("[{} of {} shown; narrow the glob or raise limit]\n", limit, found);
    if (!tree.incomplete.empty()) text += fmt::format("[search incomplete: {}]\n", tree.incomplete);
    return {ToolStatus::ok, std::move(text), {{"found", found}}};
}

}  // namespace

std::unique_ptr<Tool> make_find_files_tool(const Workspace& workspace) {
    return make_function_tool(make_spec(), [&workspace](const boost::json::object& arguments) {
        return find(workspace, arguments);
    });
}

}  // namespace skein::tools
