#pragma once
// Notices a run that goes round in circles: the same action with the same outcome, over and over.

#include <string>
#include <string_view>

namespace skein::agent {

class StuckDetector {
  public:
    /// `limit` equal observations in a row are stuck; 0 never is.
    explicit StuckDetector(int limit) : limit_(limit) {}
    /// A call that ran: stuck when name, arguments and result repeat.
    void observe_call(std::string_view name, std::string_view arguments, std::string_view result);
    /// A turn that ran nothing although it had to (cut off, malformed, unclosed thinking).
    void observe_nothing_run();
    bool stuck() const { return limit_ > 0 && repeats_ >= limit_; }
    int repeats() const { return repeats_; }

  private:
    void observe(std::string action);

    int limit_;
    int repeats_ = 0;
    std::string last_;
};

}  // namespace skein::agent
