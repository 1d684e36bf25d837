// Fuzzing without libFuzzer, for builds by GCC: a main() for LLVMFuzzerTestOneInput.
//
//   fuzz_NAME [--seconds S] SEED...
//
// Runs every seed, then changed seeds for S seconds (default: $SKEIN_FUZZ_SECONDS, else 10), and
// keeps the inputs that reach code no earlier one did. The order of changes is the same every time;
// only how many of them fit into the time differs. A seed is a file; a failing input stays in the
// working directory as crash-NAME and is itself a seed for reproducing the failure.
//
// Coverage comes from GCC's -fsanitize-coverage=trace-pc, which calls __sanitizer_cov_trace_pc at
// every edge. Bounds: one input may take ten seconds and one allocation two gigabytes.

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
extern "C" void __sanitizer_set_death_callback(void (*callback)());
extern "C" const char* __asan_default_options() { return "max_allocation_size_mb=2048"; }

namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr std::size_t kMapSize = 1 << 16;
constexpr std::size_t kMaxInput = 1 << 16;
constexpr unsigned kSecondsAnInput = 10;

std::array<std::uint8_t, kMapSize> reached{};  ///< edges, by hashed address
std::size_t n_reached = 0;
std::uintptr_t previous = 0;

const std::uint8_t* current_data = nullptr;
std::size_t current_size = 0;
std::string crash_path;

/// Async-signal-safe: called from a signal handler or from the sanitizer on its way out.
void save_current() {
    const int file = open(crash_path.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644);
    if (file < 0) return;
    const ssize_t written = write(file, current_data, current_size);
    close(file);
    constexpr char notice[] = "\nfuzz: the failing input is kept as ";
    if (written >= 0 && write(STDERR_FILENO, notice, sizeof notice - 1) > 0 &&
        write(STDERR_FILENO, crash_path.data(), crash_path.size()) > 0) {
        (void)!write(STDERR_FILENO, "\n", 1);
    }
}

void on_signal(int number) {
    save_current();
    signal(number, SIG_DFL);
    raise(number);
}

/// True when the input reached an edge that no earlier input had.
bool run(const Bytes& input) {
    const std::size_t before = n_reached;
    // A copy of the exact size, so that one byte too far is found.
    const Bytes exact(input.begin(), input.end());
    current_data = exact.data();
    current_size = exact.size();
    previous = 0;
    alarm(kSecondsAnInput);
    LLVMFuzzerTestOneInput(exact.data(), exact.size());
    alarm(0);
    return n_reached > before;
}

class Mutator {
  public:
    Bytes changed(const std::vector<Bytes>& corpus) {
        // Newer inputs reach rarer code: half of the picks come from the last quarter.
        const std::size_t from = below(2) == 0 ? corpus.size() - (corpus.size() + 3) / 4 : 0;
        Bytes bytes = corpus[from + below(corpus.size() - from)];
        const std::size_t n_changes = std::size_t{1} << below(4);
        for (std::size_t i = 0; i < n_changes; ++i) change(bytes, corpus[below(corpus.size())]);
        if (bytes.size() > kMaxInput) bytes.resize(kMaxInput);
        return bytes;
    }

  private:
    std::size_t below(std::size_t n) { return n == 0 ? 0 : random_() % n; }

    void change(Bytes& bytes, const Bytes& other) {
        const std::size_t at = below(bytes.size());
        const auto position = bytes.begin() + static_cast<std::ptrdiff_t>(at);
        switch (below(8)) {
            case 0:
                if (!bytes.empty()) bytes[at] ^= static_cast<std::uint8_t>(1U << below(8));
                break;
            case 1:
                if (!bytes.empty()) bytes[at] = static_cast<std::uint8_t>(random_());
                break;
            case 2:
                bytes.insert(position, 1 + below(4), static_cast<std::uint8_t>(random_()));
                break;
            case 3: {  // cut some out
                const std::size_t n = std::min(bytes.size() - at, 1 + below(1 + bytes.size() / 4));
                bytes.erase(position, position + static_cast<std::ptrdiff_t>(n));
                break;
            }
            case 4:
            case 5: {  // copy a piece of another input in, or over
                const auto [begin, n] = piece(other);
                const Bytes copy(begin, begin + static_cast<std::ptrdiff_t>(n));
                if (below(2) == 0) {
                    bytes.insert(position, copy.begin(), copy.end());
                } else {
                    const std::size_t fits = std::min(n, bytes.size() - at);
                    std::copy_n(copy.begin(), fits, position);
                }
                break;
            }
            case 6:
                set_integer(bytes, at);
                break;
            default:
                if (!bytes.empty()) bytes[at] = ascii(below(16));
                break;
        }
    }

    std::pair<Bytes::const_iterator, std::size_t> piece(const Bytes& other) {
        const std::size_t at = below(other.size());
        const std::size_t n = std::min(other.size() - at, 1 + below(below(8) == 0 ? 4096 : 16));
        return {other.begin() + static_cast<std::ptrdiff_t>(at), n};
    }

    /// Lengths and counts at their edges, in 1, 2, 4 or 8 bytes, least byte first.
    void set_integer(Bytes& bytes, std::size_t at) {
        static constexpr std::int64_t edges[] = {
            0, 1, -1, 2, 16, 31, 32, 64, 127, 128, 255, 256, 4096, 32767, 32768, 65535, 65536,
            INT32_MAX, INT32_MIN, UINT32_MAX, INT64_MAX, INT64_MIN, INT64_MAX / 4};
        const std::int64_t value = edges[below(std::size(edges))];
        const std::size_t width = std::min(std::size_t{1} << below(4), bytes.size() - at);
        std::memcpy(bytes.data() + at, &value, width);
    }

    static std::uint8_t ascii(std::size_t i) {
        return static_cast<std::uint8_t>("{}[]\":,\\<>09e-\n "[i]);
    }

    std::mt19937_64 random_{20};
};

double default_seconds() {
    const char* text = std::getenv("SKEIN_FUZZ_SECONDS");
    return text == nullptr ? 10 : std::strtod(text, nullptr);
}

int fuzz(std::vector<Bytes> corpus, double seconds) {
    for (const Bytes& seed : corpus) run(seed);
    const std::size_t n_seeds = corpus.size(), edges_of_seeds = n_reached;
    corpus.emplace_back();
    run(corpus.back());
    Mutator mutator;
    std::uint64_t runs = corpus.size();
    const auto deadline =
        std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    while (std::chrono::steady_clock::now() < deadline) {
        for (int i = 0; i < 64; ++i, ++runs) {
            Bytes input = mutator.changed(corpus);
            if (run(input)) corpus.push_back(std::move(input));
        }
    }
    std::cout << n_seeds << " seeds reach " << edges_of_seeds << " edges; " << runs
              << " inputs reach " << n_reached << ", kept " << corpus.size() << "\n";
    // Without coverage this would be noise, and without time nothing was tried.
    if (n_reached == 0 || runs <= n_seeds + 1) {
        std::cerr << "fuzz: nothing was measured; is the parser built with trace-pc?\n";
        return 1;
    }
    return 0;
}

}  // namespace

/// Called at every edge of the parsers, which alone are built with coverage.
extern "C" void __sanitizer_cov_trace_pc() {
    const auto here = reinterpret_cast<std::uintptr_t>(__builtin_return_address(0)) -
                      reinterpret_cast<std::uintptr_t>(&LLVMFuzzerTestOneInput);
    std::uint8_t& slot = reached[((here * 0x9E3779B97F4A7C15U >> 40) ^ previous) % kMapSize];
    previous = here >> 1;
    if (slot != 0) return;
    slot = 1;
    ++n_reached;
}

int main(int argc, char** argv) {
    double seconds = default_seconds();
    std::vector<Bytes> corpus;
    for (int i = 1; i < argc; ++i) {
        if (std::strcmp(argv[i], "--seconds") == 0 && i + 1 < argc) {
            seconds = std::strtod(argv[++i], nullptr);
            continue;
        }
        std::ifstream file(argv[i], std::ios::binary);
        if (!file) {
            std::cerr << "fuzz: cannot read the seed " << argv[i] << "\n";
            return 2;
        }
        Bytes bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
        if (bytes.size() > kMaxInput) bytes.resize(kMaxInput);
        corpus.push_back(std::move(bytes));
    }
    const char* slash = std::strrchr(argv[0], '/');
    crash_path = "crash-" + std::string(slash == nullptr ? argv[0] : slash + 1);
    __sanitizer_set_death_callback(save_current);
    signal(SIGABRT, on_signal);
    signal(SIGALRM, on_signal);
    return fuzz(std::move(corpus), seconds);
}
