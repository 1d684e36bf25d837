// Two turns of a conversation. The second one evaluates only what is new: the log only ever grows.
//
//   02_chat MODEL.gguf

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <iostream>

#include "agent/agent.h"
#include "agent/llm/local_model.h"
#include "agent/memory_recorder.h"

namespace {

boost::asio::awaitable<void> chat(skein::agent::Agent& agent, skein::agent::MemoryRecorder& log) {
    for (const char* text : {"My name is Ada.", "What is my name?"}) {
        agent.say(text);
        auto turn = agent.step();
        const auto step = co_await std::move(turn);
        const auto& reply = log.steps.back().reply;
        std::cout << "user> " << text << "\nmodel> " << step.reply.text << "\n"
                  << "       (" << reply.reused_tokens << " tokens reused, "
                  << reply.evaluated_tokens << " evaluated)\n";
    }
}

}  // namespace

int main(int argc, char** argv) {
    using namespace skein;
    if (argc < 2) {
        std::cerr << "usage: 02_chat MODEL.gguf\n";
        return 2;
    }
    agent::LocalModel model(model::Engine::load(argv[1]));
    tools::Registry no_tools;
    agent::MemoryRecorder recorder;
    agent::AgentConfig config;
    config.instruction = "You answer in one short sentence.";
    config.sampling.temperature = 0;
    config.limits.reply_tokens = 48;
    agent::Agent agent(config, model, no_tools, recorder);

    boost::asio::io_context io;
    boost::asio::co_spawn(io, chat(agent, recorder), boost::asio::detached);
    io.run();
}
