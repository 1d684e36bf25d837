#pragma once
// Progress of a long prefill on stderr: a bar on a terminal, a line every ten seconds elsewhere.

#include <chrono>
#include <string>
#include <vector>

#include "model/session.h"

namespace skein::harnesses {

/// Guesses when a prefill ends. Its cost grows with the depth, so the time so far is taken for
/// a n + b n^2, through the measured points at n and n / 2.
class PrefillEstimate {
  public:
    /// Requires: ascending `done`.
    void add(int done, double seconds);
    /// Seconds until `total` tokens are done; negative while nothing is known.
    double seconds_left(int total) const;

  private:
    struct Point {
        double tokens, seconds;
    };
    std::vector<Point> points_;
};

class PrefillBar final : public model::PrefillProgress {
  public:
    explicit PrefillBar(std::string what);
    ~PrefillBar() override;  ///< ends the line
    bool on_progress(int done, int total) override;
    void finish();  ///< ends the line, so that other output may follow

  private:
    std::string what_;
    bool terminal_, open_line_ = false;
    std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
    double shown_at_ = 0;
    PrefillEstimate estimate_;
};

/// "prefill [=====     ]  50 %  65536 of 131072 tokens  9000 tokens/s  left 0:07"
std::string prefill_line(const std::string& what, int done, int total, double tokens_per_s,
                         double seconds_left);

}  // namespace skein::harnesses
