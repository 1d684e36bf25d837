#include "agent/message.h"

namespace skein::agent {

std::string_view to_string(Role role) {
    switch (role) {
        case Role::system: return "system";
        case Role::user: return "user";
        case Role::assistant: return "assistant";
        case Role::tool: return "tool";
    }
    return "unknown";
}

}  // namespace skein::agent
