// Softmax of every row with a polynomial exponential on vectors of 8.
//
// exp(d) = 2^n * 2^f with n + f = d * log2(e), f in [-0.5, 0.5]; 2^f by a polynomial of degree 6.
// d <= 0 always, so n is clamped at -126 only from below: smaller results are below fp32's range.
#include <cmath>
#include <cstdint>

namespace {

typedef float Vector __attribute__((vector_size(32)));
typedef float Unaligned __attribute__((vector_size(32), aligned(4), may_alias));
typedef std::int32_t Integers __attribute__((vector_size(32)));

Vector load(const float* p) {
    return *reinterpret_cast<const Unaligned*>(p);
}
void store(float* p, Vector v) {
    *reinterpret_cast<Unaligned*>(p) = v;
}

Vector exp_of(Vector d) {
    Vector t = d * 1.44269504f;
    t = t > -126.0f ? t : Vector{} - 126.0f;
    const Integers n = __builtin_convertvector(t - 0.5f, Integers);
    const Vector f = t - __builtin_convertvector(n, Vector);
    Vector p = f * 1.5403530e-4f + 1.3333558e-3f;
    p = p * f + 9.6181291e-3f;
    p = p * f + 5.5504109e-2f;
    p = p * f + 2.4022651e-1f;
    p = p * f + 6.9314718e-1f;
    p = p * f + 1.0f;
    return p * reinterpret_cast<Vector>((n + 127) << 23);
}

float exp_of(float d) {
    return exp_of(Vector{} + d)[0];
}

}  // namespace

extern "C" void softmax(const float* x, float* y, std::int64_t rows, std::int64_t cols) {
    for (std::int64_t r = 0; r < rows; ++r) {
        const float* in = x + r * cols;
        float* out = y + r * cols;
        float highest = -INFINITY;
        Vector h0 = Vector{} - INFINITY, h1 = h0;
        std::int64_t c = 0;
        for (; c + 16 <= cols; c += 16) {
            const Vector a = load(in + c), b = load(in + c + 8);
            h0 = a > h0 ? a : h0;
            h1 = b > h1 ? b : h1;
        }
        for (; c < cols; ++c) highest = in[c] > highest ? in[c] : highest;
        h0 = h0 > h1 ? h0 : h1;
        for (int lane = 0; lane < 8; ++lane) highest = h0[lane] > highest ? h0[lane] : highest;

        Vector s0 = {}, s1 = {};
        float sum = 0;
        for (c = 0; c + 16 <= cols; c += 16) {
            const Vector a = exp_of(load(in + c) - highest), b = exp_of(load(in + c + 8) - highest);
            store(out + c, a);
            store(out + c + 8, b);
            s0 += a;
            s1 += b;
        }
        for (; c < cols; ++c) sum += out[c] = exp_of(in[c] - highest);
        s0 += s1;
        for (int lane = 0; lane < 8; ++lane) sum += s0[lane];

        const float scale = 1.0f / sum;
        for (c = 0; c + 8 <= cols; c += 8) store(out + c, load(out + c) * scale);
        for (; c < cols; ++c) out[c] *= scale;
    }
}
