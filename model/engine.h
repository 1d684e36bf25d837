#pragma once
// A loaded model: weights, tokenizer, config. Immutable, shareable between threads. PUBLIC.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "model/config.h"
#include "model/cpu/options.h"
#include "model/error.h"
#include "model/session.h"
#include "model/text/tokenizer.h"

namespace skein::model {

struct EngineOptions {
    int threads = 0;  ///< 0: the cores this process may run on
    Isa isa = Isa::automatic;
    int prefill_chunk = 512;  ///< tokens evaluated together; does not change any bit
    KvType kv = KvType::int16;
    KvType index_kv = KvType::int16;  ///< index keys of sparse layers
    std::size_t kv_bytes_max = 0;  ///< for all sessions together; 0: three quarters of the memory
};

struct SessionOptions {
    int max_context = 0;  ///< tokens; 0: what the model was trained for
    ChoiceRecording choices = ChoiceRecording::digest;
};

class Engine {
  public:
    /// Opens a GGUF file (also split) or a safetensors folder, checks it and prepares its weights.
    /// Nothing refers to the file afterwards. Throws: Error with what, where, expected, got.
    static std::shared_ptr<const Engine> load(const std::filesystem::path& path,
                                              const EngineOptions& options = {});
    virtual ~Engine() = default;

    virtual Session new_session(const SessionOptions& options = {}) const = 0;
    virtual const ModelConfig& config() const = 0;
    virtual const Tokenizer& tokenizer() const = 0;
    virtual const std::string& chat_template() const = 0;  ///< text only; never executed
    virtual const std::filesystem::path& path() const = 0;
    virtual int threads() const = 0;
    virtual Isa isa() const = 0;  ///< never `automatic`
    /// Names the reduction order of the arithmetic; equal versions give equal bits.
    virtual std::string numerics_version() const = 0;
    virtual std::size_t weight_bytes() const = 0;  ///< bytes read for one decoded token
    virtual std::size_t kv_bytes_per_token() const = 0;
};

}  // namespace skein::model
