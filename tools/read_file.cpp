#include <fmt/format.h>

#include <algorithm>

#include "tools/builtin.h"
#include "tools/function_tool.h"
#include "tools/lines.h"
#include "tools/text.h"

namespace skein::tools {
namespace {

ToolSpec make_spec(const ReadOptions& options) {
    ToolSpec spec;
    spec.name = "read_file";
    spec.description = fmt::format(
        "Reads a text file of the workspace as numbered lines (number, tab, line). At most {} "
        "lines and {} bytes a "
        "call; lines longer than {} bytes are cut. Page on with offset, inside a long line with "
        "column.",
        options.max_lines, options.max_bytes, options.max_line_bytes);
    spec.parameters = {
        {"type", "object"},
        {"properties",
         {{"path",
           {{"type", "string"}, {"minLength", 1}, {"description", "relative to the workspace"}}},
          {"offset", {{"type", "integer"}, {"minimum", 1}, {"description", "first line, from 1"}}},
          {"limit", {{"type", "integer"}, {"minimum", 1}, {"description", "number of lines"}}},
          {"column",
           {{"type", "integer"},
            {"minimum", 1},
            {"description", "first byte shown of the first line, from 1"}}}}},
        {"required", {"path"}},
        {"additionalProperties", false}};
    spec.effect = Effect::reads;
    return spec;
}

ToolResult failed(std::string text) {
    return {ToolStatus::failed, std::move(text), {}};
}

std::string binary_notice(std::string_view path, std::string_view bytes) {
    const bool utf16 = bytes.substr(0, 2) == "\xFF\xFE" || bytes.substr(0, 2) == "\xFE\xFF";
    return fmt::format("{} is not a text file ({}, holds NUL bytes){}", quote(path, 300),
                       counted(bytes.size(), "byte"),
                       utf16 ? "; it looks like UTF-16, which iconv can convert" : "");
}

// Where a page ends and how to go on from there.
struct Page {
    std::string text;
    std::size_t next_line = 0, next_column = 0;  // next_column: inside next_line, or 0
    std::size_t cut_line = 0;                    // first line shown only in part, or 0
};

Page make_page(std::string_view bytes, std::size_t first, std::size_t limit, std::size_t column,
               const ReadOptions& options) {
    const std::vector<std::string_view> lines = split_lines(bytes, first + limit - 1);
    Page page;
    for (std::size_t number = first; number <= lines.size(); ++number) {
        std::string_view line = lines[number - 1];
        const std::size_t skipped = number == first ? std::min(column - 1, line.size()) : 0;
        line.remove_prefix(skipped);
        const std::string_view shown = utf8_prefix(line, options.max_line_bytes);
        const std::string row =
            fmt::format("{:6}\t{}{}\n", number, shown, shown.size() < line.size() ? " [cut]" : "");
        if (!page.text.empty() && page.text.size() + row.size() > options.max_bytes) {
            page.next_line = number;
            return page;
        }
        page.text += row;
        if (shown.size() < line.size() && page.cut_line == 0) {
            page.cut_line = number;
            page.next_column = skipped + shown.size() + 1;
        }
    }
    page.next_line = std::max(lines.size() + 1, first);
    return page;
}

ToolResult read_page(const Workspace& workspace, const ReadOptions& options,
                     const boost::json::object& arguments) {
    const std::string_view path = string_or(arguments, "path", "");
    const std::string bytes = workspace.read(path);
    if (is_binary(bytes)) return failed(binary_notice(path, bytes));
    const std::size_t total = count_lines(bytes);
    if (total == 0) return {ToolStatus::ok, "[the file is empty]", {{"lines", 0}}};
    const std::size_t first = count_or(arguments, "offset", 1);
    if (first > total) {
        return failed(fmt::format("{} has {}; offset {} is past its end", quote(path, 300),
                                  counted(total, "line"), first));
    }
    const std::size_t limit = std::min<std::size_t>(
        {count_or(arguments, "limit", options.max_lines), options.max_lines, total});
    std::string_view text = bytes;
    if (text.substr(0, kUtf8Mark.size()) == kUtf8Mark) text.remove_prefix(kUtf8Mark.size());
    Page page = make_page(text, first, limit, count_or(arguments, "column", 1), options);
    const std::string notes = describe_text(bytes);
    if (!notes.empty()) page.text += fmt::format("[{}]\n", notes);
    if (page.cut_line > 0) {
        page.text += fmt::format("[line {} is cut; see more of it with offset={} column={}]\n",
                                 page.cut_line, page.cut_line, page.next_column);
    }
    if (first > 1 || page.next_line <= total) {
        page.text += fmt::format(
            "[lines {}-{} of {}{}]\n", first, page.next_line - 1, total,
            page.next_line <= total ? fmt::format("; go on with offset={}", page.next_line) : "");
    }
    return {ToolStatus::ok, std::move(page.text), {{"lines", total}, {"bytes", bytes.size()}}};
}

}  // namespace

std::unique_ptr<Tool> make_read_file_tool(const Workspace& workspace, ReadOptions options) {
    return make_function_tool(make_spec(options),
                              [&workspace, options](const boost::json::object& arguments) {
                                  return read_page(workspace, options, arguments);
                              });
}

}  // namespace skein::tools
