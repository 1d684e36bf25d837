// The style and the layering of the tree as ordinary tests. What may deviate stands in the lists of
// exceptions below, which may only shrink.

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace fs = std::filesystem;

namespace {

const fs::path kRoot = SKEIN_SOURCE_DIR;
const std::vector<std::string> kFolders = {"model", "sandbox", "tools", "agent", "harnesses"};

struct SourceFile {
    std::string path;  // relative to the root, generic
    std::string folder;
    std::vector<std::string> lines;
};

std::vector<std::string> lines_of(const fs::path& path) {
    std::ifstream file(path);
    std::vector<std::string> lines;
    for (std::string line; std::getline(file, line);) lines.push_back(line);
    return lines;
}

bool is_source(const fs::path& path) {
    const auto extension = path.extension();
    return extension == ".h" || extension == ".cpp" || extension == ".cuh" || extension == ".cu";
}

// Task directories hold kernels that the product reads as data: they follow the tasks' own README.
bool is_task_data(const std::string& path) {
    return path.starts_with("harnesses/kernel_opt/tasks/") && !path.ends_with("generator.cpp");
}

std::vector<SourceFile> sources(const std::vector<std::string>& folders) {
    std::vector<SourceFile> files;
    for (const std::string& folder : folders) {
        for (const auto& entry : fs::recursive_directory_iterator(kRoot / folder)) {
            if (!entry.is_regular_file() || !is_source(entry.path())) continue;
            const std::string path = entry.path().lexically_relative(kRoot).generic_string();
            if (is_task_data(path) || path.starts_with("tests/data/") ||
                path.starts_with("tests/bench/peers/")) {
                continue;
            }
            files.push_back({path, folder, lines_of(entry.path())});
        }
    }
    REQUIRE(!files.empty());
    std::sort(files.begin(), files.end(),
              [](const SourceFile& a, const SourceFile& b) { return a.path < b.path; });
    return files;
}

std::vector<SourceFile> product() {
    return sources(kFolders);
}

std::vector<SourceFile> everything() {
    auto folders = kFolders;
    folders.insert(folders.end(), {"tests", "examples"});
    return sources(folders);
}

/// The text between < > or " " of an include line, or empty.
std::string included(const std::string& line) {
    if (!line.starts_with("#include")) return {};
    const auto open = line.find_first_of("<\"");
    if (open == std::string::npos) return {};
    const auto close = line.find_first_of(">\"", open + 1);
    return close == std::string::npos ? std::string() : line.substr(open + 1, close - open - 1);
}

/// Whether an include names a header of this project.
bool is_ours(const std::string& target) {
    return std::find(kFolders.begin(), kFolders.end(), target.substr(0, target.find('/'))) !=
           kFolders.end();
}

std::string without_comment(const std::string& line) {
    const auto at = line.find("//");
    return at == std::string::npos ? line : line.substr(0, at);
}

bool word_in(const std::string& line, const std::string& word) {
    for (auto at = line.find(word); at != std::string::npos; at = line.find(word, at + 1)) {
        const auto ident = [](char c) {
            return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
        };
        const auto end = at + word.size();
        if ((at == 0 || !ident(line[at - 1])) && (end >= line.size() || !ident(line[end])))
            return true;
    }
    return false;
}

}  // namespace

TEST_SUITE("tidy") {
    TEST_CASE("tidy: includes follow the layers") {
        const std::map<std::string, std::set<std::string>> allowed = {
            {"model", {"model"}},
            {"sandbox", {"sandbox"}},
            {"tools", {"tools", "sandbox"}},
            {"agent", {"agent", "model", "tools"}},
            {"harnesses", {"harnesses", "agent", "model", "tools", "sandbox"}},
        };
        for (const SourceFile& file : product()) {
            for (const std::string& line : file.lines) {
                const std::string target = included(line);
                const std::string folder = target.substr(0, target.find('/'));
                if (std::find(kFolders.begin(), kFolders.end(), folder) == kFolders.end()) continue;
                CAPTURE(file.path);
                CAPTURE(target);
                CHECK(allowed.at(file.folder).contains(folder));
            }
        }
    }

    TEST_CASE("tidy: each package is included only at its home") {
        const std::vector<std::pair<std::string, std::vector<std::string>>> homes = {
            {"utf8proc.h", {"model/text/"}},
            {"boost/json", {"model/load/", "tools/", "agent/", "harnesses/", "sandbox/"}},
            {"boost/asio", {"sandbox/", "tools/", "agent/", "harnesses/"}},
            {"boost/process", {"sandbox/"}},
            {"seccomp.h", {"sandbox/"}},
            {"linux/landlock.h", {"sandbox/"}},
            {"SQLiteCpp/", {"agent/store/"}},
            {"sqlite3.h", {"agent/store/"}},
            {"zstd.h", {"agent/store/"}},
            {"openssl/", {"agent/store/", "agent/llm/", "tools/", "harnesses/"}},
            {"boost/beast", {"agent/llm/", "harnesses/"}},
            {"yaml-cpp/", {"harnesses/config/"}},
            {"CLI/", {"harnesses/"}},
        };
        for (const SourceFile& file : product()) {
            for (const std::string& line : file.lines) {
                const std::string target = included(line);
                for (const auto& [package, folders] : homes) {
                    if (!target.starts_with(package)) continue;
                    CAPTURE(file.path);
                    CAPTURE(target);
                    CHECK(std::any_of(folders.begin(), folders.end(), [&](const std::string& home) {
                        return file.path.starts_with(home);
                    }));
                }
            }
        }
    }

    TEST_CASE("tidy: files stay below 600 lines and 100 columns") {
        for (const SourceFile& file : everything()) {
            CAPTURE(file.path);
            CHECK(file.lines.size() <= 600);
            for (std::size_t i = 0; i < file.lines.size(); ++i) {
                const std::string& line = file.lines[i];
                const auto columns = std::count_if(line.begin(), line.end(), [](char c) {
                    return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;  // not a continuation
                });
                // A literal that cannot be broken (a hash, a long expected text) may stick out.
                if (columns <= 100 || line.find("R\"") != std::string::npos) continue;
                CAPTURE(i + 1);
                CHECK(columns <= 100);
            }
        }
    }

    TEST_CASE("tidy: libraries never print, read the environment or exit") {
        for (const SourceFile& file : product()) {
            if (file.folder == "harnesses") continue;
            // Programs of their own, not parts of a library.
            if (file.path.ends_with("_main.cpp") || file.path.starts_with("sandbox/runner"))
                continue;
            for (const std::string& raw : file.lines) {
                const std::string line = without_comment(raw);
                CAPTURE(file.path);
                CAPTURE(line);
                for (const char* word : {"getenv", "secure_getenv", "printf", "puts", "exit"}) {
                    if (file.path == "model/expect.cpp" || line.find('"') != std::string::npos)
                        break;
                    CHECK_FALSE(word_in(line, word));
                }
                CHECK(line.find("std::cout") == std::string::npos);
                CHECK(line.find("std::cerr") == std::string::npos);
            }
        }
    }

    TEST_CASE("tidy: no unfinished marks, no using namespace in headers") {
        const std::vector<std::string> marks = {std::string("FIX") + "ME", std::string("TO") + "DO",
                                                std::string("XX") + "X"};
        for (const SourceFile& file : everything()) {
            for (const std::string& line : file.lines) {
                CAPTURE(file.path);
                CAPTURE(line);
                for (const std::string& mark : marks) CHECK_FALSE(word_in(line, mark));
                if (file.path.ends_with(".h")) CHECK_FALSE(line.starts_with("using namespace"));
            }
        }
    }

    TEST_CASE("tidy: the forward pass holds no preprocessor condition") {
        for (const std::string& line : lines_of(kRoot / "model/transformer.cpp")) {
            CAPTURE(line);
            CHECK_FALSE(line.starts_with("#if"));
        }
    }

    TEST_CASE("tidy: every header starts with pragma once and a comment") {
        for (const SourceFile& file : product()) {
            if (!file.path.ends_with(".h")) continue;
            CAPTURE(file.path);
            REQUIRE(file.lines.size() > 2);
            CHECK(file.lines[0] == "#pragma once");
            CHECK(file.lines[1].starts_with("//"));
        }
    }

    TEST_CASE("tidy: every source is named in a CMakeLists.txt") {
        std::string all;
        for (const auto& entry : fs::recursive_directory_iterator(kRoot)) {
            if (entry.path().filename() != "CMakeLists.txt") continue;
            if (entry.path().string().find("/build") != std::string::npos) continue;
            for (const std::string& line : lines_of(entry.path())) all += line + "\n";
        }
        for (const SourceFile& file : everything()) {
            if (file.path.ends_with(".h") || file.path.find("/data/") != std::string::npos)
                continue;
            if (file.path.find("/cheats/") != std::string::npos) continue;
            CAPTURE(file.path);
            std::string name = fs::path(file.path).stem().string();
            if (name.ends_with("_fuzz")) name.resize(name.size() - 5);  // listed in foreach()
            CHECK(all.find(name) != std::string::npos);
        }
    }

    TEST_CASE("tidy: every header is included by a test") {
        // Headers whose behaviour is reached only through another header's test.
        const std::set<std::string> exceptions = {};
        std::set<std::string> tested;
        for (const SourceFile& file : sources({"tests", "examples"})) {
            for (const std::string& line : file.lines) tested.insert(included(line));
        }
        // A header that the source of a tested header includes is exercised with it, and so on.
        std::map<std::string, std::set<std::string>> uses;
        for (const SourceFile& file : product()) {
            const std::string stem = file.path.substr(0, file.path.rfind('.'));
            for (const std::string& line : file.lines) uses[stem + ".h"].insert(included(line));
        }
        for (std::size_t before = 0; before != tested.size();) {
            before = tested.size();
            for (const auto& [header, headers] : uses) {
                // A source without a header of its own implements one that it includes.
                const bool reached =
                    fs::exists(kRoot / header)
                        ? tested.contains(header)
                        : std::any_of(headers.begin(), headers.end(), [&](const std::string& used) {
                              return is_ours(used) && tested.contains(used);
                          });
                if (reached) tested.insert(headers.begin(), headers.end());
            }
        }
        for (const SourceFile& file : product()) {
            if (!file.path.ends_with(".h") || exceptions.contains(file.path)) continue;
            CAPTURE(file.path);
            CHECK(tested.contains(file.path));
        }
    }

    TEST_CASE("tidy: folders have a README of 5 to 60 lines") {
        for (const std::string folder :
             {"model", "model/load", "model/text", "model/sampling", "model/cpu", "model/kv",
              "sandbox", "tools", "tools/profiler", "agent", "agent/chat", "agent/llm",
              "agent/store", "harnesses", "harnesses/kernel_opt", "examples"}) {
            CAPTURE(folder);
            const auto lines = lines_of(kRoot / folder / "README.md");
            CHECK(lines.size() >= 5);
            CHECK(lines.size() <= 60);
        }
    }
}
