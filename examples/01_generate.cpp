// Tokens in, text out: load a model, evaluate a prompt, sample a continuation.
//
//   01_generate MODEL.gguf [PROMPT]

#include <iostream>

#include "model/engine.h"
#include "model/sampling/sampler.h"

int main(int argc, char** argv) {
    using namespace skein::model;
    if (argc < 2) {
        std::cerr << "usage: 01_generate MODEL.gguf [PROMPT]\n";
        return 2;
    }
    try {
        const auto engine = Engine::load(argv[1]);
        const Tokenizer& tokenizer = engine->tokenizer();
        const std::string prompt = argc > 2 ? argv[2] : "The capital of France is";

        Session session = engine->new_session();
        session.sync(tokenizer.encode(prompt));
        std::cout << prompt;

        Detokenizer text(tokenizer);
        SamplingParams sampling;
        sampling.temperature = 0;  // argmax: the same text on every machine
        for (int i = 0; i < 16; ++i) {
            const Sampled next =
                sample(session.logits(), sampling, static_cast<std::uint64_t>(session.size()));
            std::cout << text.push(next.token);
            session.decode(next.token);
        }
        std::cout << text.flush() << "\n";
    } catch (const Error& error) {
        std::cerr << error.what() << "\n";
        return 1;
    }
}
