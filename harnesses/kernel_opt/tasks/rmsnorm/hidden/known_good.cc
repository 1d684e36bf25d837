// Rows divided by their root mean square: four vector accumulators, one division a row.
#include <cmath>
#include <cstdint>

namespace {

typedef float Vector __attribute__((vector_size(32)));
typedef float Unaligned __attribute__((vector_size(32), aligned(4), may_alias));

Vector load(const float* p) {
    return *reinterpret_cast<const Unaligned*>(p);
}
void store(float* p, Vector v) {
    *reinterpret_cast<Unaligned*>(p) = v;
}

}  // namespace

extern "C" void rmsnorm(const float* x, const float* weight, float* y, std::int64_t rows,
                        std::int64_t cols) {
    for (std::int64_t r = 0; r < rows; ++r) {
        const float* in = x + r * cols;
        float* out = y + r * cols;
        Vector s0 = {}, s1 = {}, s2 = {}, s3 = {};
        float squares = 0;
        std::int64_t c = 0;
        for (; c + 32 <= cols; c += 32) {
            const Vector v0 = load(in + c), v1 = load(in + c + 8);
            const Vector v2 = load(in + c + 16), v3 = load(in + c + 24);
            s0 += v0 * v0;
            s1 += v1 * v1;
            s2 += v2 * v2;
            s3 += v3 * v3;
        }
        for (; c < cols; ++c) squares += in[c] * in[c];
        const Vector s = (s0 + s1) + (s2 + s3);
        for (int lane = 0; lane < 8; ++lane) squares += s[lane];
        const float scale = 1.0f / std::sqrt(squares / static_cast<float>(cols) + 1e-6f);
        for (c = 0; c + 8 <= cols; c += 8) {
            store(out + c, load(in + c) * scale * load(weight + c));
        }
        for (; c < cols; ++c) out[c] = in[c] * scale * weight[c];
    }
}
