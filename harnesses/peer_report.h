#pragma once
// Figures of another engine, read from the JSON that tests/bench/peers/llama_bench.py prints:
//
//   report = {"engine": name, "runs": [run...]}    run = {"model", "threads", "depth", figure...}
//   figure = "pp512": {"median": tokens/s} | tokens/s      "tg128" likewise

#include <boost/json/value.hpp>
#include <filesystem>
#include <optional>
#include <string>

namespace skein::harnesses {

class PeerReport {
  public:
    /// Throws: UsageError when the text is not JSON or has no runs.
    explicit PeerReport(const std::string& text);
    /// Throws: UsageError also when the file cannot be read.
    static PeerReport read(const std::filesystem::path& file);

    /// Looks only at runs of the model with this file name from now on. A report about a single
    /// model needs no choice. Throws: UsageError naming the models there are.
    void choose_model(const std::string& name);
    /// As choose_model when the report names it, else nothing for a report about a single model.
    void choose_model_of(const std::filesystem::path& file);

    const std::string& engine() const { return engine_; }
    /// Tokens/s of "pp" with this many tokens, or of "tg" (single tokens; any count when `n` is not
    /// there) at this depth with as many threads. A run that states no threads counts for any.
    std::optional<double> figure(const std::string& kind, int n, int depth, int threads) const;

  private:
    bool chosen(const boost::json::object& run) const;

    boost::json::array runs_;
    std::string engine_, model_;
};

}  // namespace skein::harnesses
