#include "tools/glob.h"

namespace skein::tools {

Pattern make_glob(std::string_view glob) {
    while (glob.substr(0, 2) == "./") glob.remove_prefix(2);
    std::string out = glob.find('/') == glob.npos ? "^(.*/)?" : "^";
    int braces = 0;
    for (std::size_t i = 0; i < glob.size(); ++i) {
        const char c = glob[i];
        if (glob.substr(i, 3) == "**/") {
            out += "(.*/)?";
            i += 2;
        } else if (glob.substr(i, 2) == "**") {
            out += ".*";
            i += 1;
        } else if (c == '*') {
            out += "[^/]*";
        } else if (c == '?') {
            out += "[^/]";
        } else if (c == '[') {
            const std::size_t close = glob.find(']', i + 2);
            if (close == glob.npos) throw PatternError("glob: missing ]");
            std::string set(glob.substr(i, close - i + 1));
            if (set[1] == '!') set[1] = '^';
            out += set;
            i = close;
        } else if (c == '{') {
            out += '(';
            ++braces;
        } else if (c == '}' && braces > 0) {
            out += ')';
            --braces;
        } else if (c == ',' && braces > 0) {
            out += '|';
        } else if (c == '\\' && i + 1 < glob.size()) {
            out += escape_pattern(glob.substr(++i, 1));
        } else {
            out += escape_pattern(std::string_view(&c, 1));
        }
    }
    if (braces > 0) throw PatternError("glob: missing }");
    return Pattern(out + "$");
}

}  // namespace skein::tools
