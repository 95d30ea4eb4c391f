// CRC32C by the SSE4.2 instruction, chosen at run time.
#include "record/crc32c.h"

#if defined(__x86_64__)

#include <nmmintrin.h>

#include "foundation/bytes.h"
#include "foundation/cpu.h"

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

__attribute__((target("sse4.2"), flatten)) uint32_t crc32c_by_crc_instruction(const uint8_t* data, size_t size) {
  return crc32c_by_instruction<Sse42Step>(data, size);
}

}  // namespace

const CrcFunction crc32c_sse42 = has_sse42() ? crc32c_by_crc_instruction : nullptr;

}  // namespace penstock::detail

#else

namespace penstock::detail {
const CrcFunction crc32c_sse42 = nullptr;
}  // namespace penstock::detail

#endif
