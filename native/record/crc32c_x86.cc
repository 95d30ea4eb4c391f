// CRC32C by the SSE4.2 instruction, chosen at run time.
#include "record/crc32c.h"

#if defined(__x86_64__)

#include <nmmintrin.h>

#include "foundation/bytes.h"

namespace penstock::detail {
namespace {

struct Sse42Step {
  __attribute__((target("sse4.2"))) static uint64_t add64(uint64_t crc, const uint8_t* p) {
    return _mm_crc32_u64(crc, load64(p));
  }
  __attribute__((target("sse4.2"))) static uint32_t add32(uint32_t crc, const uint8_t* p) {
    return _mm_crc32_u32(crc, load32(p));
  }
  __attribute__((target("sse4.2"))) static uint32_t add8(uint32_t crc, uint8_t byte) { return _mm_crc32_u8(crc, byte); }
};

}  // namespace

__attribute__((target("sse4.2"), flatten)) uint32_t crc32c_sse42(const uint8_t* data, size_t size) {
  return crc32c_by_instruction<Sse42Step>(data, size);
}

CrcFunction crc32c_for_x86() {
  __builtin_cpu_init();  // this may run before the library's own constructors
  return __builtin_cpu_supports("sse4.2") ? crc32c_sse42 : nullptr;
}
}  // namespace penstock::detail

#else

namespace penstock::detail {
CrcFunction crc32c_for_x86() { return nullptr; }
}  // namespace penstock::detail

#endif
