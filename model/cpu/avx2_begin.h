#pragma once
// Opens a region compiled for AVX2, FMA and F16C. A region instead of a compiler flag for the file,
// so that inline functions of shared headers are not emitted with instructions that other CPUs
// lack. Included by each AVX2 source after its other headers.
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c")
#endif
