// Whether this machine has AVX2, and what marks the functions that use it.
#pragma once

#if defined(__x86_64__)
#define PENSTOCK_AVX2 __attribute__((target("avx2")))
#define PENSTOCK_AVX2_INLINE __attribute__((target("avx2"), always_inline)) inline
#endif

namespace penstock {

inline bool has_avx2() {
#if defined(__x86_64__)
  static const bool has = (__builtin_cpu_init(), __builtin_cpu_supports("avx2") != 0);
  return has;
#else
  return false;
#endif
}

}  // namespace penstock
