#pragma once
// Text of the model::Error that a call throws, so that a test can say what a message must contain.

#include <string>
#include <string_view>

#include "model/error.h"

namespace skein::test {

/// The message of the model::Error thrown by `call`; empty when nothing was thrown. Other
/// exceptions pass through and fail the test.
template <typename Call>
std::string error_text(Call&& call) {
    try {
        call();
    } catch (const model::Error& error) {
        return error.what();
    }
    return {};
}

inline bool contains(std::string_view text, std::string_view part) {
    return text.find(part) != std::string_view::npos;
}

}  // namespace skein::test
