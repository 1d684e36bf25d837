#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "tools/builtin.h"
#include "tools/function_tool.h"
#include "tools/glob.h"
#include "tools/lines.h"
#include "tools/search_scope.h"
#include "tools/text.h"

namespace skein::tools {
namespace {

constexpr std::size_t kDefaultLimit = 100, kMaxLimit = 2000;
constexpr std::size_t kMaxShownBytes = 300;             // of a line, around the match
constexpr std::uint64_t kMaxBytesSearched = 256 << 20;  // keeps one call around a second
constexpr std::size_t kMaxContext = 10;

ToolSpec make_spec() {
    ToolSpec spec;
    spec.name = "grep";
    spec.description =
        "Searches the text files of the workspace line by line; answers path:line: text, sorted by "
        "path. The pattern "
        "is an extended regular expression with \\d \\w \\s \\b (no back references, no "
        "look-around), or plain text "
        "with literal=true. Binary files, links and .git are left out.";
    spec.parameters = {
        {"type", "object"},
        {"properties",
         {{"pattern", {{"type", "string"}, {"minLength", 1}, {"maxLength", 5000}}},
          {"path", {{"type", "string"}, {"description", "file or directory"}, {"default", "."}}},
          {"glob",
           {{"type", "string"},
            {"minLength", 1},
            {"maxLength", 1000},
            {"description", "only such files, as *.h"}}},
          {"ignore_case", {{"type", "boolean"}, {"default", false}}},
          {"literal", {{"type", "boolean"}, {"default", false}}},
          {"context",
           {{"type", "integer"},
            {"minimum", 0},
            {"maximum", kMaxContext},
            {"default", 0},
            {"description", "lines shown around each match"}}},
          {"limit",
           {{"type", "integer"},
            {"minimum", 1},
            {"maximum", kMaxLimit},
            {"default", kDefaultLimit}}}}},
        {"required", {"pattern"}},
        {"additionalProperties", false}};
    spec.effect = Effect::reads;
    return spec;
}

class Search {
  public:
    Search(const Workspace& workspace, const boost::json::object& arguments)
        : workspace_(workspace),
          start_(string_or(arguments, "path", ".")),
          pattern_(make_pattern(arguments)),
          context_(count_or(arguments, "context", 0)),
          limit_(count_or(arguments, "limit", kDefaultLimit)) {
        if (arguments.contains("glob")) glob_ = make_glob(string_or(arguments, "glob", ""));
    }

    ToolResult run() {
        if (workspace_.is_directory(start_)) {
            const Workspace::Tree tree = search_tree(workspace_, start_);
            incomplete_ = tree.incomplete;
            for (const Workspace::Entry& entry : tree.entries) search_entry(entry);
        } else {
            search_text(std::string(start_), workspace_.read(start_));
        }
        return result();
    }

  private:
    static Pattern make_pattern(const boost::json::object& arguments) {
        const std::string_view text = string_or(arguments, "pattern", "");
        const bool ignore_case = flag_or(arguments, "ignore_case", false);
        return flag_or(arguments, "literal", false) ? Pattern::literal(text, ignore_case)
                                                    : Pattern(text, ignore_case);
    }

    void search_entry(const Workspace::Entry& entry) {
        if (entry.kind != 'f') return;
        if (glob_ && !glob_->matches(below(entry.name, start_, workspace_.root().native()))) return;
        if (bytes_ + entry.bytes > kMaxBytesSearched) {
            ++unsearched_;
            return;
        }
        try {
            search_text(entry.name, workspace_.read(entry.name));
        } catch (const WorkspaceError&) {
            ++unsearched_;  // too large, unreadable or changed since it was listed
        }
    }

    void search_text(const std::string& name, const std::string& bytes) {
        bytes_ += bytes.size();
        if (is_binary(bytes)) {
            ++binary_;
            return;
        }
        std::string_view text = bytes;
        if (text.substr(0, kUtf8Mark.size()) == kUtf8Mark) text.remove_prefix(kUtf8Mark.size());
        const std::vector<std::string_view> lines = split_lines(text);
        std::size_t shown_until = 0, here = 0;
        for (std::size_t i = 0; i < lines.size(); ++i) {
            const std::size_t end = pattern_.find_end(lines[i]);
            if (end == Pattern::npos) continue;
            ++here;
            if (matches_++ >= limit_) continue;
            const std::size_t first = std::max(shown_until, i - std::min(i, context_));
            if (context_ > 0 && shown_until > 0 && first > shown_until) text_ += "--\n";
            for (std::size_t k = first; k < i; ++k) show(name, k, '-', lines[k], 0);
            if (i >= shown_until) show(name, i, ':', lines[i], end);
            shown_until = std::max(shown_until, i + 1);
            // Lines after the match, unless they match themselves and get their own turn.
            for (std::size_t k = i + 1; k < lines.size() && k <= i + context_; ++k) {
                if (k < shown_until) continue;
                if (pattern_.find_end(lines[k]) != Pattern::npos) break;
                show(name, k, '-', lines[k], 0);
                shown_until = k + 1;
            }
        }
        files_ += here > 0 ? 1 : 0;
    }

    void show(const std::string& name, std::size_t index, char sign, std::string_view line,
              std::size_t end) {
        std::string cut;
        if (line.size() > kMaxShownBytes) {
            const std::size_t begin =
                end > kMaxShownBytes * 2 / 3 ? end - kMaxShownBytes * 2 / 3 : 0;
            const std::string_view rest = utf8_suffix(line, line.size() - begin);
            const std::string_view part = utf8_prefix(rest, kMaxShownBytes);
            cut = fmt::format("{}{}{} [of {} bytes]", begin > 0 ? "..." : "", part,
                              part.size() < rest.size() ? "..." : "", line.size());
            line = cut;
        }
        text_ += fmt::format("{}{}{}{} {}\n", shown_name(name), sign, index + 1, sign, line);
    }

    ToolResult result() {
        if (matches_ == 0) text_ = "[no match]\n";
        if (matches_ > limit_) {
            text_ += fmt::format("[{} of {} in {} shown; narrow the pattern or raise limit]\n",
                                 limit_, counted(matches_, "match"), counted(files_, "file"));
        }
        if (binary_ > 0) text_ += fmt::format("[{} skipped]\n", counted(binary_, "binary file"));
        if (unsearched_ > 0) {
            text_ +=
                fmt::format("[{} not searched: too large, unreadable, or beyond {} MiB in all]\n",
                            counted(unsearched_, "file"), kMaxBytesSearched >> 20);
        }
        if (!incomplete_.empty()) text_ += fmt::format("[search incomplete: {}]\n", incomplete_);
        return {ToolStatus::ok, std::move(text_), {{"matches", matches_}, {"files", files_}}};
    }

    const Workspace& workspace_;
    std::string_view start_;
    Pattern pattern_;
    std::optional<Pattern> glob_;
    std::size_t context_, limit_;
    std::string text_, incomplete_;
    std::uint64_t bytes_ = 0;
    std::size_t matches_ = 0, files_ = 0, binary_ = 0, unsearched_ = 0;
};

}  // namespace

std::unique_ptr<Tool> make_grep_tool(const Workspace& workspace) {
    return make_function_tool(make_spec(), [&workspace](const boost::json::object& arguments) {
        return Search(workspace, arguments).run();
    });
}

}  // namespace skein::tools
