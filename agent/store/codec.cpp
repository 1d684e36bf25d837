#include "agent/store/codec.h"

#include <openssl/evp.h>
#include <zstd.h>

#include <bit>
#include <cstring>

#include "agent/store/error.h"

namespace skein::agent::store {
namespace {

constexpr char kPlain = 0, kZstd = 1;
constexpr std::size_t kMaxBytes = std::size_t{2} << 30;

void put_varint(Bytes& out, std::uint64_t value) {
    while (value >= 0x80) {
        out.push_back(static_cast<char>(value | 0x80));
        value >>= 7;
    }
    out.push_back(static_cast<char>(value));
}

std::uint64_t take_varint(std::string_view& in) {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 35; shift += 7) {
        if (in.empty()) throw Error("store: a blob ends inside a number");
        const auto byte = static_cast<std::uint8_t>(in.front());
        in.remove_prefix(1);
        value |= std::uint64_t{byte & 0x7FU} << shift;
        if (byte < 0x80) return value;
    }
    throw Error("store: a blob holds a number above 2^35");
}

}  // namespace

Bytes compress(std::string_view bytes) {
    // Small pieces rarely gain; the frame header alone is 9 bytes.
    if (bytes.size() >= 64) {
        Bytes packed(1 + ZSTD_compressBound(bytes.size()), kZstd);
        const std::size_t n =
            ZSTD_compress(packed.data() + 1, packed.size() - 1, bytes.data(), bytes.size(), 3);
        if (!ZSTD_isError(n) && n + 1 < bytes.size()) {
            packed.resize(1 + n);
            return packed;
        }
    }
    Bytes plain(1, kPlain);
    plain.append(bytes);
    return plain;
}

Bytes decompress(std::string_view stored) {
    if (stored.empty()) throw Error("store: empty blob, expected a codec byte");
    const char codec = stored.front();
    stored.remove_prefix(1);
    if (codec == kPlain) return Bytes(stored);
    if (codec != kZstd) {
        throw Error("store: blob codec " + std::to_string(static_cast<unsigned char>(codec)) +
                    ", expected 0 (plain) or 1 (zstd)");
    }
    const auto size = ZSTD_getFrameContentSize(stored.data(), stored.size());
    if (size == ZSTD_CONTENTSIZE_ERROR || size == ZSTD_CONTENTSIZE_UNKNOWN || size > kMaxBytes) {
        throw Error("store: blob is not a zstd frame with a size below 2 GiB");
    }
    Bytes out(static_cast<std::size_t>(size), '\0');
    const std::size_t n = ZSTD_decompress(out.data(), out.size(), stored.data(), stored.size());
    if (ZSTD_isError(n) || n != out.size()) {
        throw Error(std::string("store: broken zstd blob: ") + ZSTD_getErrorName(n));
    }
    return out;
}

Bytes encode_tokens(std::span<const Token> tokens) {
    Bytes raw;
    raw.reserve(tokens.size() * 2);
    for (const Token token : tokens) put_varint(raw, static_cast<std::uint64_t>(token));
    return compress(raw);
}

Tokens decode_tokens(std::string_view stored) {
    const Bytes raw = decompress(stored);
    std::string_view in = raw;
    Tokens tokens;
    while (!in.empty()) {
        const std::uint64_t value = take_varint(in);
        if (value > 0x7FFFFFFFU) throw Error("store: token id above 2^31");
        tokens.push_back(static_cast<Token>(value));
    }
    return tokens;
}

Bytes encode_floats(std::span<const float> values) {
    static_assert(std::endian::native == std::endian::little, "blobs are little-endian");
    return compress({reinterpret_cast<const char*>(values.data()), values.size_bytes()});
}

std::vector<float> decode_floats(std::string_view stored) {
    const Bytes raw = decompress(stored);
    if (raw.size() % sizeof(float) != 0) throw Error("store: logprob blob is cut");
    std::vector<float> values(raw.size() / sizeof(float));
    if (!raw.empty()) std::memcpy(values.data(), raw.data(), raw.size());
    return values;
}

Bytes encode_strings(std::span<const std::string> texts) {
    Bytes raw;
    for (const std::string& text : texts) {
        put_varint(raw, text.size());
        raw += text;
    }
    return compress(raw);
}

std::vector<std::string> decode_strings(std::string_view stored) {
    const Bytes raw = decompress(stored);
    std::string_view in = raw;
    std::vector<std::string> texts;
    while (!in.empty()) {
        const std::uint64_t length = take_varint(in);
        if (length > in.size()) throw Error("store: a text is longer than its blob");
        texts.emplace_back(in.substr(0, length));
        in.remove_prefix(length);
    }
    return texts;
}

Bytes encode_origins(std::span<const std::pair<Origin, std::size_t>> runs) {
    Bytes raw;
    for (const auto& [origin, length] : runs) {
        raw.push_back(static_cast<char>(origin));
        put_varint(raw, length);
    }
    return raw;
}

std::vector<std::pair<Origin, std::size_t>> decode_origins(std::string_view in) {
    std::vector<std::pair<Origin, std::size_t>> runs;
    while (!in.empty()) {
        const auto origin = static_cast<std::uint8_t>(in.front());
        in.remove_prefix(1);
        if (origin > static_cast<std::uint8_t>(Origin::glue)) {
            throw Error("store: unknown token origin " + std::to_string(origin));
        }
        runs.emplace_back(static_cast<Origin>(origin), take_varint(in));
    }
    return runs;
}

Bytes sha256(std::string_view bytes) {
    Bytes digest(32, '\0');
    unsigned int size = 0;
    if (EVP_Digest(bytes.data(), bytes.size(), reinterpret_cast<unsigned char*>(digest.data()),
                   &size, EVP_sha256(), nullptr) != 1) {
        throw Error("store: SHA-256 is not available from this OpenSSL");
    }
    return digest;
}

std::string to_hex(std::string_view bytes) {
    constexpr char kDigits[] = "0123456789abcdef";
    std::string hex;
    hex.reserve(bytes.size() * 2);
    for (const char c : bytes) {
        const auto byte = static_cast<std::uint8_t>(c);
        hex.push_back(kDigits[byte >> 4]);
        hex.push_back(kDigits[byte & 15]);
    }
    return hex;
}

Bytes from_hex(std::string_view hex) {
    const auto digit = [&](char c) -> unsigned {
        if (c >= '0' && c <= '9') return static_cast<unsigned>(c - '0');
        if (c >= 'a' && c <= 'f') return static_cast<unsigned>(c - 'a') + 10U;
        throw Error("store: '" + std::string(hex) + "' is not lower-case hexadecimal");
    };
    if (hex.size() % 2 != 0) throw Error("store: odd number of hexadecimal digits");
    Bytes bytes;
    for (std::size_t i = 0; i < hex.size(); i += 2) {
        bytes.push_back(static_cast<char>(digit(hex[i]) << 4 | digit(hex[i + 1])));
    }
    return bytes;
}

}  // namespace skein::agent::store
