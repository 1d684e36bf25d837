#include "agent/text_stream.h"

#include <algorithm>
#include <boost/asio/post.hpp>

namespace skein::agent {

TextStream::TextStream(EventSink sink, const model::Tokenizer& tokenizer,
                       std::vector<Token> stop_tokens, boost::asio::any_io_executor executor)
    : sink_(std::move(sink)), detokenizer_(tokenizer), stop_tokens_(std::move(stop_tokens)),
      executor_(std::move(executor)) {}

void TextStream::push(Token token) {
    if (std::ranges::find(stop_tokens_, token) != stop_tokens_.end()) return;
    const std::scoped_lock lock(queue_mutex_);
    queue_.push_back(token);
    if (posted_) return;
    posted_ = true;
    boost::asio::post(executor_, [self = shared_from_this()] { self->drain(); });
}

void TextStream::drain() {
    std::vector<Token> tokens;
    {
        const std::scoped_lock lock(queue_mutex_);
        tokens.swap(queue_);
        posted_ = false;
    }
    std::string text;
    for (const Token token : tokens) text += detokenizer_.push(token);
    if (!text.empty()) sink_(TextDelta{std::move(text)});
}

void TextStream::finish() {
    drain();
    std::string rest = detokenizer_.flush();
    if (!rest.empty()) sink_(TextDelta{std::move(rest)});
}

}  // namespace skein::agent
