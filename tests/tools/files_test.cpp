// The file tools as a model calls them.
#include <doctest/doctest.h>
#include <sys/stat.h>

#include <filesystem>

#include "tests/support/call_tool.h"
#include "tests/support/temporary_directory.h"
#include "tools/builtin.h"

using namespace skein;
using tools::ToolResult;
using tools::ToolStatus;
namespace fs = std::filesystem;

namespace {

bool contains(const std::string& text, std::string_view part) {
    return text.find(part) != text.npos;
}

struct Fixture {
    test::TemporaryDirectory directory;
    tools::Workspace workspace{directory.path()};
    tools::Registry registry;
    Fixture() {
        registry.add(tools::make_read_file_tool(workspace));
        registry.add(tools::make_write_file_tool(workspace));
        registry.add(tools::make_edit_file_tool(workspace));
        registry.add(tools::make_list_dir_tool(workspace));
        registry.add(tools::make_find_files_tool(workspace));
        registry.add(tools::make_grep_tool(workspace));
    }
    ToolResult call(const char* name, const boost::json::object& arguments) {
        return test::call_tool(registry, name, arguments);
    }
    void put(std::string_view name, std::string_view bytes) {
        test::put_file(directory / name, bytes);
    }
    std::string get(std::string_view name) { return test::get_file(directory / name); }
};

}  // namespace

TEST_SUITE("tools/read_file") {
    TEST_CASE("lines are numbered and an ordinary file has no notes") {
        Fixture f;
        f.put("a.txt", "one\n\ntwo\n");
        const ToolResult result = f.call("read_file", {{"path", "a.txt"}});
        CHECK(result.status == ToolStatus::ok);
        CHECK(result.text == "     1\tone\n     2\t\n     3\ttwo\n");
    }

    TEST_CASE(
        "what cannot be seen is noted: CRLF, mark, missing newline, other encodings, emptiness") {
        Fixture f;
        f.put("crlf.txt",
              "\xEF\xBB\xBF"
              "a\r\nb\r\n");
        CHECK(f.call("read_file", {{"path", "crlf.txt"}}).text ==
              "     1\ta\n     2\tb\n[CRLF line ends, byte-order mark]\n");
        f.put("latin.txt", "caf\xe9");
        CHECK(f.call("read_file", {{"path", "latin.txt"}}).text ==
              "     1\tcaf\xe9\n[not UTF-8, no newline at the end]\n");
        f.put("empty", "");
        CHECK(f.call("read_file", {{"path", "empty"}}).text == "[the file is empty]");
        f.put("mark", "\xEF\xBB\xBF");
        CHECK(f.call("read_file", {{"path", "mark"}}).status == ToolStatus::ok);
    }

    TEST_CASE("a long file is paged, and an offset past the end says how long it is") {
        Fixture f;
        std::string text;
        for (int i = 1; i <= 5000; ++i) text += std::to_string(i) + "\n";
        f.put("long", text);
        const ToolResult first = f.call("read_file", {{"path", "long"}});
        CHECK(
            contains(first.text, "  2000\t2000\n[lines 1-2000 of 5000; go on with offset=2001]\n"));
        const ToolResult last = f.call("read_file", {{"path", "long"}, {"offset", 4999}});
        CHECK(last.text == "  4999\t4999\n  5000\t5000\n[lines 4999-5000 of 5000]\n");
        const ToolResult some =
            f.call("read_file", {{"path", "long"}, {"offset", 2}, {"limit", 1}});
        CHECK(some.text == "     2\t2\n[lines 2-2 of 5000; go on with offset=3]\n");
        const ToolResult past = f.call("read_file", {{"path", "long"}, {"offset", 5001}});
        CHECK(past.status == ToolStatus::failed);
        CHECK(contains(past.text, "5000 lines"));
        CHECK(f.call("read_file", {{"path", "long"}, {"offset", 0}}).status ==
              ToolStatus::invalid_call);
    }

    TEST_CASE("F12: one line of 5 MiB and 100 000 empty lines are bounded, with a way to page on") {
        Fixture f;
        std::string line(5 << 20, 'x');
        line.replace(2000, 5, "START");
        f.put("line", line);
        const ToolResult first = f.call("read_file", {{"path", "line"}});
        CHECK(first.text.size() < 3000);
        CHECK(contains(first.text, "[line 1 is cut; see more of it with offset=1 column=2001]"));
        const ToolResult next =
            f.call("read_file", {{"path", "line"}, {"offset", 1}, {"column", 2001}});
        CHECK(contains(next.text, "     1\tSTART"));
        CHECK(contains(next.text, "column=4001"));
        f.put("empties", std::string(100000, '\n'));
        const ToolResult empties = f.call("read_file", {{"path", "empties"}});
        CHECK(empties.text.size() < 20000);
        CHECK(contains(empties.text, "of 100000"));
        std::string wide;
        for (int i = 0; i < 200; ++i) wide += std::string(1500, 'w') + "\n";
        f.put("wide", wide);
        const ToolResult bounded = f.call("read_file", {{"path", "wide"}});
        CHECK(bounded.text.size() < (65 << 10));
        CHECK(contains(bounded.text, "go on with offset=44"));
    }

    TEST_CASE("binary files are refused with what they look like") {
        Fixture f;
        f.put("binary", std::string_view("\x7f"
                                         "ELF\0\0",
                                         6));
        f.put("wide.txt", std::string_view("\xFF\xFE"
                                           "a\0",
                                           4));
        CHECK(f.call("read_file", {{"path", "binary"}}).status == ToolStatus::failed);
        CHECK(contains(f.call("read_file", {{"path", "binary"}}).text, "not a text file (6 bytes"));
        CHECK(contains(f.call("read_file", {{"path", "wide.txt"}}).text, "UTF-16"));
    }

    TEST_CASE("a missing file suggests the near name") {
        Fixture f;
        f.put("src/kernel.cpp", "x");
        const ToolResult result = f.call("read_file", {{"path", "src/kernel.cc"}});
        CHECK(result.status == ToolStatus::failed);
        CHECK(contains(result.text, "the nearest name there is src/kernel.cpp"));
    }
}

TEST_SUITE("tools/write_file") {
    TEST_CASE("the content is stored exactly, and the answer says what was there") {
        Fixture f;
        const ToolResult created = f.call("write_file", {{"path", "d/a.txt"}, {"content", "x\ny"}});
        CHECK(created.text == "created d/a.txt: 2 lines, 3 bytes");
        CHECK(f.get("d/a.txt") == "x\ny");
        const ToolResult replaced = f.call("write_file", {{"path", "d/a.txt"}, {"content", ""}});
        CHECK(replaced.text == "wrote d/a.txt: 0 lines, 0 bytes (was 2 lines, 3 bytes)");
    }

    TEST_CASE("F14: overwriting drops line ends and mark of the old content, and says so") {
        Fixture f;
        f.put("a",
              "\xEF\xBB\xBF"
              "x\r\n");
        const ToolResult result = f.call("write_file", {{"path", "a"}, {"content", "y\n"}});
        CHECK(contains(result.text, "CRLF and are LF now"));
        CHECK(contains(result.text, "mark is gone"));
        CHECK(f.get("a") == "y\n");
    }

    TEST_CASE("refusals come back as failed results") {
        Fixture f;
        fs::create_directories(f.directory / "dir");
        CHECK(f.call("write_file", {{"path", "../x"}, {"content", ""}}).status ==
              ToolStatus::failed);
        CHECK(f.call("write_file", {{"path", "dir"}, {"content", ""}}).status ==
              ToolStatus::failed);
        CHECK(f.call("write_file", {{"path", ""}, {"content", ""}}).status ==
              ToolStatus::invalid_call);
        CHECK(f.call("write_file", {{"path", "x"}}).status == ToolStatus::invalid_call);
    }
}

TEST_SUITE("tools/edit_file") {
    TEST_CASE("an edit changes the file, keeps its mode and shows the lines") {
        Fixture f;
        f.put("a.sh", "one\r\ntwo\r\n");
        REQUIRE(::chmod((f.directory / "a.sh").c_str(), 0755) == 0);
        const ToolResult result =
            f.call("edit_file", {{"path", "a.sh"}, {"old_text", "two"}, {"new_text", "2\n3"}});
        CHECK(result.status == ToolStatus::ok);
        CHECK(result.text == "edited a.sh: 1 replacement at line 2\n-two\n+2\n+3\n");
        CHECK(f.get("a.sh") == "one\r\n2\r\n3\r\n");
        struct stat info {};
        REQUIRE(::stat((f.directory / "a.sh").c_str(), &info) == 0);
        CHECK((info.st_mode & 07777) == 0755);
    }

    TEST_CASE("several places are replaced only on request") {
        Fixture f;
        f.put("a", "x\nx\n");
        boost::json::object arguments{{"path", "a"}, {"old_text", "x"}, {"new_text", "y"}};
        CHECK(contains(f.call("edit_file", arguments).text, "2 times, at lines 1, 2"));
        CHECK(f.get("a") == "x\nx\n");
        arguments["replace_all"] = "true";
        CHECK(f.call("edit_file", arguments).status == ToolStatus::invalid_call);
        arguments["replace_all"] = true;
        CHECK(contains(f.call("edit_file", arguments).text, "2 replacements, first at line 1"));
        CHECK(f.get("a") == "y\ny\n");
    }

    TEST_CASE("files with NUL bytes and missing files are refused") {
        Fixture f;
        f.put("b", std::string_view("a\0b", 3));
        const boost::json::object arguments{{"path", "b"}, {"old_text", "a"}, {"new_text", "c"}};
        CHECK(contains(f.call("edit_file", arguments).text, "NUL"));
        CHECK(f.call("edit_file", {{"path", "no"}, {"old_text", "a"}, {"new_text", "c"}}).status ==
              ToolStatus::failed);
    }
}

TEST_SUITE("tools/list_dir") {
    TEST_CASE("entries are sorted and marked by kind") {
        Fixture f;
        f.put("b.txt", "12345");
        f.put("a/x", "");
        f.put("new\nline", "1");
        fs::create_symlink("b.txt", f.directory / "link");
        CHECK(f.call("list_dir", {}).text ==
              "a/\nb.txt  5 bytes\nlink@ (link)\n\"new\\nline\"  1 byte\n");
        CHECK(f.call("list_dir", {{"path", "a"}}).text == "x  0 bytes\n");
        CHECK(contains(f.call("list_dir", {{"path", "b.txt"}}).text, "not a directory"));
        fs::create_directories(f.directory / "void");
        CHECK(f.call("list_dir", {{"path", "void"}}).text == "[the directory is empty]\n");
    }

    TEST_CASE("a large directory is cut with its size") {
        Fixture f;
        for (int i = 0; i < 1100; ++i) f.put("many/f" + std::to_string(i), "");
        CHECK(contains(f.call("list_dir", {{"path", "many"}}).text, "[1000 of 1100 entries shown"));
    }
}

TEST_SUITE("tools/find_files") {
    TEST_CASE("names are found at any depth, sorted, without .git") {
        Fixture f;
        f.put("z.h", "");
        f.put("src/a.h", "");
        f.put("src/a.cpp", "");
        f.put(".git/hooks/x.h", "");
        CHECK(f.call("find_files", {{"glob", "*.h"}}).text == "src/a.h\nz.h\n");
        CHECK(f.call("find_files", {{"glob", "a.*"}, {"path", "src"}}).text ==
              "src/a.cpp\nsrc/a.h\n");
        CHECK(f.call("find_files", {{"glob", "src"}}).text == "src/\n");
        CHECK(
            f.call("find_files", {{"glob", "src/*"}, {"path", f.directory.path().string()}}).text ==
            "src/a.cpp\nsrc/a.h\n");
        CHECK(f.call("find_files", {{"glob", "*.rs"}}).text == "[no match]\n");
        CHECK(contains(f.call("find_files", {{"glob", "*"}, {"limit", 1}}).text, "[1 of 5 shown"));
        CHECK(f.call("find_files", {{"glob", "{a"}}).status == ToolStatus::failed);
    }
}

TEST_SUITE("tools/grep") {
    TEST_CASE("matches carry path and line, sorted, and say what was left out") {
        Fixture f;
        f.put("b.txt", "int x;\nfloat y;\nint z;\n");
        f.put("a/c.h", "int main\r\n");
        f.put("bin", std::string_view("int\0", 4));
        CHECK(f.call("grep", {{"pattern", "^int"}}).text ==
              "a/c.h:1: int main\nb.txt:1: int x;\nb.txt:3: int z;\n[1 binary file skipped]\n");
        CHECK(f.call("grep", {{"pattern", "main$"}, {"glob", "*.h"}}).text ==
              "a/c.h:1: int main\n");
        CHECK(
            f.call("grep", {{"pattern", "FLOAT"}, {"ignore_case", true}, {"path", "b.txt"}}).text ==
            "b.txt:2: float y;\n");
        CHECK(f.call("grep", {{"pattern", "."}, {"literal", true}, {"path", "b.txt"}}).text ==
              "[no match]\n");
        CHECK(contains(f.call("grep", {{"pattern", "int"}, {"limit", 1}}).text,
                       "[1 of 3 matches in 2 files shown"));
        CHECK(contains(f.call("grep", {{"pattern", "("}}).text, "missing ) at byte 1"));
        CHECK(f.call("grep", {{"pattern", "x"}, {"path", "absent"}}).status == ToolStatus::failed);
    }

    TEST_CASE("context lines are shown once, with gaps marked") {
        Fixture f;
        f.put("t", "1\n2\nhit\nhit\n5\n6\n7\n8\nhit\n");
        CHECK(f.call("grep", {{"pattern", "hit"}, {"context", 1}}).text ==
              "t-2- 2\nt:3: hit\nt:4: hit\nt-5- 5\n--\nt-8- 8\nt:9: hit\n");
    }

    TEST_CASE("F12: a match in a line of 5 MiB shows its surroundings only") {
        Fixture f;
        std::string line(5 << 20, 'x');
        line.replace(3 << 20, 6, "needle");
        f.put("line", line);
        const ToolResult result = f.call("grep", {{"pattern", "needle"}});
        CHECK(result.text.size() < 500);
        CHECK(contains(result.text, "needle"));
        CHECK(contains(result.text, "[of 5242880 bytes]"));
    }
}
