// What this processor can do, asked once when the library is loaded.
//
// Every function that has a version for one instruction set follows one pattern. The header declares a pointer to that
// version, named after the instruction set:
//
//     extern const MirrorRow mirror_row_avx2;  // null where the processor lacks AVX2
//
// The source file that holds the version defines it, also where the core is built for another processor:
//
//     const MirrorRow mirror_row_avx2 = has_avx2() ? mirror_row : nullptr;
//
// Callers test the pointer, and run the plain version if it is null. No static initializer may use such a pointer: it
// could run before the pointer is set.
#pragma once

#if defined(__x86_64__)
#include <cpuid.h>

#define PENSTOCK_AVX2 __attribute__((target("avx2")))
#define PENSTOCK_AVX512 __attribute__((target("avx512f,avx512vl")))
#define PENSTOCK_SHA __attribute__((target("sha,sse4.1")))
#define PENSTOCK_AVX2_INLINE __attribute__((target("avx2"), always_inline)) inline

namespace penstock {

// __builtin_cpu_init: these may run before the library's own constructors.
inline bool has_sse41() { return __builtin_cpu_init(), __builtin_cpu_supports("sse4.1") != 0; }
inline bool has_sse42() { return __builtin_cpu_init(), __builtin_cpu_supports("sse4.2") != 0; }
inline bool has_pclmul() { return has_sse41() && __builtin_cpu_supports("pclmul") != 0; }
inline bool has_avx2() { return __builtin_cpu_init(), __builtin_cpu_supports("avx2") != 0; }
inline bool has_avx512() {
  return __builtin_cpu_init(), __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512vl") != 0;
}
// Not among the names that __builtin_cpu_supports knows: bit 29 of EBX of leaf 7.
inline bool has_sha() {
  unsigned a, b, c, d;
  return has_sse41() && __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b >> 29 & 1) != 0;
}
inline bool has_bmi2() { return __builtin_cpu_init(), __builtin_cpu_supports("bmi2") != 0; }

// The first two generations of Zen have the instruction in microcode, slower than shifts.
inline bool has_fast_pext() { return has_bmi2() && !__builtin_cpu_is("znver1") && !__builtin_cpu_is("znver2"); }

}  // namespace penstock
#endif
