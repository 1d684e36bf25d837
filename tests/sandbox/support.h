#pragma once
// What the sandbox tests share. Nothing here skips: a machine that cannot isolate fails.

#include <doctest/doctest.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "sandbox/sandbox.h"

namespace skein::sandbox::test {

/// One sandbox for all cases; the first use requires the full level.
Sandbox& full_sandbox();

/// Where the attack program lies on the host; mounted read-only at /attack in `policy()`.
std::filesystem::path attack_directory();

/// The default policy with /attack and an environment mark that finds survivors.
SandboxPolicy policy();
SandboxPolicy policy(const std::filesystem::path& workspace);

/// Generous where a test does not look, so that a busy machine changes nothing.
ResourceLimits limits(std::chrono::milliseconds wall = std::chrono::seconds(20));

Command bash(const std::string& script);
Command attack(std::vector<std::string> arguments);

ProcessResult run(const Command& command, const SandboxPolicy& rules = policy(),
                  const ResourceLimits& bounds = limits());

/// Where a command waits until the test has looked at it: a script that begins with
/// `read -r -u 5;` and has `descriptors = gate.inside()`.
class Gate {
  public:
    Gate();
    ~Gate();
    Gate(const Gate&) = delete;
    Gate& operator=(const Gate&) = delete;
    std::vector<PassedDescriptor> inside() const { return {{ends_[0], 5}}; }
    void open() const;

  private:
    int ends_[2];
};

/// Live processes of the machine that carry the mark of `policy()`, or whose session was led by one
/// of `supervisors`.
std::vector<int> survivors(const std::vector<int>& supervisors = {});
/// Looks again until there are none, at most `patience`; returns those left.
std::vector<int> survivors_after(std::chrono::milliseconds patience,
                                 const std::vector<int>& supervisors = {});

/// Direct children of this process.
std::vector<int> children();

/// A directory that is removed with the object, whatever it holds.
class TemporaryDirectory {
  public:
    TemporaryDirectory();
    ~TemporaryDirectory();
    TemporaryDirectory(const TemporaryDirectory&) = delete;
    TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
    const std::filesystem::path& path() const { return path_; }

  private:
    std::filesystem::path path_;
};

/// Result of "name RESULT" in the output of the attack program; "" when it is not there.
std::string verdict(const ProcessResult& result, const std::string& name);

std::string read_file(const std::filesystem::path& path);
void write_file(const std::filesystem::path& path, const std::string& text);

}  // namespace skein::sandbox::test
