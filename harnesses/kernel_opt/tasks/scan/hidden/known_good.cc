// Inclusive prefix sum, two vectors of 4 a step: as fast as the anchor within the noise.
#include <cstdint>

namespace {

typedef std::int32_t Vector __attribute__((vector_size(16)));
typedef std::int32_t Unaligned __attribute__((vector_size(16), aligned(4), may_alias));

inline Vector load(const std::int32_t* p) {
    return *reinterpret_cast<const Unaligned*>(p);
}
inline void store(std::int32_t* p, const Vector& v) {
    *reinterpret_cast<Unaligned*>(p) = v;
}
inline Vector prefix(Vector v) {
    const Vector zero = {};
    v += __builtin_shufflevector(zero, v, 0, 4, 5, 6);
    v += __builtin_shufflevector(zero, v, 0, 1, 4, 5);
    return v;
}

}  // namespace

extern "C" void scan(const std::int32_t* __restrict x, std::int32_t* __restrict y, std::int64_t n) {
    std::int32_t sum = 0;
    std::int64_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const Vector a = prefix(load(x + i)), b = prefix(load(x + i + 4));
        store(y + i, a + sum);
        sum += a[3];
        store(y + i + 4, b + sum);
        sum += b[3];
    }
    for (; i < n; ++i) {
        sum += x[i];
        y[i] = sum;
    }
}
