// The whole loop with a scripted model: a call, its result in the context, an answer; and the log
// of exact tokens that the run leaves behind.

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <filesystem>
#include <iostream>

#include "agent/agent.h"
#include "agent/llm/scripted_model.h"
#include "agent/memory_recorder.h"
#include "tools/builtin.h"
#include "tools/registry.h"

int main() {
    using namespace skein;
    namespace fs = std::filesystem;
    std::string root = (fs::temp_directory_path() / "skein-example-XXXXXX").string();
    if (mkdtemp(root.data()) == nullptr) return 1;

    const tools::Workspace workspace(root);
    tools::Registry registry;
    registry.add(tools::make_write_file_tool(workspace));
    registry.add(tools::make_read_file_tool(workspace));

    agent::ScriptedModel model(
        agent::make_byte_tokenizer(),
        {{.text = "<tool_call>\n{\"name\": \"write_file\", \"arguments\": {\"path\": \"note.txt\", "
                  "\"content\": \"hello\\n\"}}\n</tool_call>"},
         {.text = "I wrote the note."}});
    agent::MemoryRecorder recorder;
    agent::AgentConfig config;
    config.instruction = "Use the tools.";
    agent::Agent agent(config, model, registry, recorder, [](const agent::AgentEvent& event) {
        if (const auto* done = std::get_if<agent::ToolFinished>(&event)) {
            std::cout << "tool " << done->call.name << ": " << to_string(done->status) << "\n";
        }
    });

    boost::asio::io_context io;
    boost::asio::co_spawn(io, agent.run("Write hello to note.txt."),
                          [](std::exception_ptr, const agent::RunResult& result) {
                              std::cout << to_string(result.exit_status) << ": "
                                        << result.final_message << "\n";
                          });
    io.run();
    std::cout << "note.txt holds: " << workspace.read("note.txt");
    std::cout << agent.log().size() << " tokens in " << agent.log().segments().size()
              << " segments, " << recorder.steps.size() << " steps\n";
    fs::remove_all(root);
}
