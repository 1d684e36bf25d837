#pragma once
// A loaded model: weights, tokenizer, config. Immutable, shareable between threads. PUBLIC.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "model/config.h"
#include "model/cpu/options.h"
#include "model/error.h"
#include "model/session.h"
#include "model/text/tokenizer.h"

namespace skein::model {

/// What attention does.
enum class AttentionMode : std::uint8_t {
    model,  ///< what the model was trained for
    dense,  ///< sparse layers attend to everything, also for files without index tensors
    local,  ///< sparse layers see the last blocks only, as many as are selected: a control
    /// Layers trained with dense attention attend to selected blocks, at contexts of up to a
    /// million tokens: see attention/retrofit.h.
    retrofit
};
const char* attention_mode_name(AttentionMode mode);

struct EngineOptions {
    int threads = 0;  ///< 0: the cores this process may run on
    Isa isa = Isa::automatic;
    int prefill_chunk = 512;  ///< tokens evaluated together; does not change any bit
    KvType kv = KvType::int16;
    KvType index_kv = KvType::int13;  ///< index keys of sparse layers
    AttentionMode attention = AttentionMode::model;
    std::size_t kv_bytes_max = 0;  ///< for all sessions together; 0: three quarters of the memory
    /// Where KV blocks go beyond kv_bytes_max, in a mapped file without a name; empty: an error.
    std::filesystem::path kv_spill_folder{};
    std::size_t kv_spill_bytes_max = 0;  ///< 0: what the disk has free
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
    /// The timeline that Session::save wrote; evaluates no token. `extra`, if given, receives what
    /// was saved with it. Throws: Error when the file is missing, damaged, truncated, or of another
    /// model or numerics version, or longer than the context.
    virtual Session load_session(const std::filesystem::path& path,
                                 std::vector<std::byte>* extra = nullptr,
                                 const SessionOptions& options = {}) const = 0;
    virtual const ModelConfig& config() const = 0;
    virtual const Tokenizer& tokenizer() const = 0;
    virtual const std::string& chat_template() const = 0;  ///< text only; never executed
    virtual const std::filesystem::path& path() const = 0;
    virtual int threads() const = 0;
    virtual Isa isa() const = 0;  ///< never `automatic`
    /// Names the reduction order of the arithmetic; equal versions give equal bits.
    virtual std::string numerics_version() const = 0;
    /// Anything but `model` is an approximation: name it wherever results are reported. `dense` of
    /// a model that is dense already is `model`.
    virtual AttentionMode attention() const = 0;
    virtual KvType kv_type() const = 0;
    virtual KvType index_kv_type() const = 0;
    virtual std::size_t weight_bytes() const = 0;  ///< bytes read for one decoded token
    virtual std::size_t kv_bytes_per_token() const = 0;
    virtual std::size_t kv_memory_bytes() const = 0;   ///< reserved for KV blocks in memory
    virtual std::size_t kv_spilled_bytes() const = 0;  ///< reserved for KV blocks in the file
};

}  // namespace skein::model
