#pragma once
// Tokens from the inference thread to TextDelta events on the agent's own executor.

#include <boost/asio/any_io_executor.hpp>
#include <memory>
#include <mutex>
#include <vector>

#include "agent/event.h"
#include "agent/context/token_log.h"
#include "model/text/tokenizer.h"

namespace skein::agent {

/// Every token but the stop tokens is shown exactly once, in order; an unfinished character is held
/// back until it is whole or the reply ends.
class TextStream : public std::enable_shared_from_this<TextStream> {
  public:
    TextStream(EventSink sink, const model::Tokenizer& tokenizer, std::vector<Token> stop_tokens,
               boost::asio::any_io_executor executor);
    /// Threads: any. The event follows on the executor.
    void push(Token token);
    /// Shows what is left. Call it on the executor when the reply is complete.
    void finish();

  private:
    void drain();

    EventSink sink_;
    model::Detokenizer detokenizer_;
    std::vector<Token> stop_tokens_;
    boost::asio::any_io_executor executor_;
    std::mutex queue_mutex_;
    std::vector<Token> queue_;
    bool posted_ = false;
};

}  // namespace skein::agent
