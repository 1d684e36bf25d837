// Uses one thing of every installed library.

#include <iostream>

#include "agent/llm/scripted_model.h"
#include "agent/store/codec.h"
#include "model/engine.h"
#include "sandbox/sandbox.h"
#include "tools/schema.h"

int main() {
    const auto tokenizer = skein::agent::make_byte_tokenizer();
    const auto tokens = tokenizer->encode("installed");
    const bool valid = !skein::tools::validate(1, {{"type", "integer"}}).has_value();
    std::cout << tokenizer->decode(tokens) << " " << valid << " "
              << to_string(skein::sandbox::Level::full) << " "
              << skein::agent::store::to_hex("ok") << "\n";
}
