// Any bytes as a GGUF file: parse, read config, vocabulary and tensors, bind them. Only
// model::Error may come out.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "model/error.h"
#include "model/load/gguf.h"
#include "model/load/gguf_model.h"
#include "model/load/quant.h"
#include "tests/fuzz/bind_everything.h"

using namespace skein::model;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    try {
        const GgufIndex index = parse_gguf(std::as_bytes(std::span(data, size)), "fuzz");
        std::size_t text = 0;
        for (const GgufPair& pair : index.pairs) text += describe_value(pair).size();
        for (const Tensor& tensor : index.tensors) {
            // One block from each end proves that the whole tensor lies inside the input.
            const DTypeInfo& info = dtype_info(tensor.type);
            std::vector<float> block(info.block_elements);
            dequantize(tensor.type, tensor.data, block);
            dequantize(tensor.type, tensor.data + tensor.bytes - info.block_bytes, block);
        }
        const auto find = [&](std::string_view name) -> const Tensor* {
            for (const Tensor& t : index.tensors) {
                if (t.name == name) return &t;
            }
            return nullptr;
        };
        text += skein::test::bind_everything(index.tensors, "gguf", [&](ConfigOptions options) {
            return gguf_config(index, find, options);
        });
        text += gguf_vocabulary(index).texts.size();
        if (text == static_cast<std::size_t>(-1)) return 1;  // keeps the work observable
    } catch (const Error&) {
    }
    return 0;
}
