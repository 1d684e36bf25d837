#pragma once
// The built-in tools, one function each; every tool is one source file. PUBLIC.

#include <chrono>
#include <memory>

#include "sandbox/sandbox.h"
#include "tools/tool.h"
#include "tools/workspace.h"

namespace skein::tools {

struct ShellOptions {
    std::chrono::milliseconds timeout{120000}, max_timeout{1800000};
    sandbox::SandboxPolicy policy;  ///< workspace is set from the Workspace
    sandbox::ResourceLimits limits;
};

/// Lifetime: sandbox and workspace must outlive the tool; so for every tool below.
std::unique_ptr<Tool> make_bash_tool(sandbox::Sandbox& sandbox, const Workspace& workspace,
                                     ShellOptions options = {});

struct ReadOptions {
    std::size_t max_lines = 2000;       ///< of one call, unless it asks for fewer
    std::size_t max_line_bytes = 2000;  ///< longer lines are cut, with a way to page on
    std::size_t max_bytes = 64 << 10;   ///< of one result
};
std::unique_ptr<Tool> make_read_file_tool(const Workspace& workspace, ReadOptions options = {});
std::unique_ptr<Tool> make_write_file_tool(const Workspace& workspace);
std::unique_ptr<Tool> make_edit_file_tool(const Workspace& workspace);
std::unique_ptr<Tool> make_list_dir_tool(const Workspace& workspace);
std::unique_ptr<Tool> make_find_files_tool(const Workspace& workspace);
std::unique_ptr<Tool> make_grep_tool(const Workspace& workspace);

}  // namespace skein::tools
