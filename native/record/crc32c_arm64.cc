// CRC32C by the ARMv8 instruction, chosen at run time.
#include "record/crc32c.h"

#if defined(__aarch64__)

#include <arm_acle.h>
#if defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

#include "foundation/bytes.h"

namespace penstock::detail {
namespace {

struct Armv8Step {
  __attribute__((target("+crc"))) static uint64_t add64(uint64_t crc, const uint8_t* p) {
    return __crc32cd(static_cast<uint32_t>(crc), load64(p));
  }
  __attribute__((target("+crc"))) static uint32_t add32(uint32_t crc, const uint8_t* p) {
    return __crc32cw(crc, load32(p));
  }
  __attribute__((target("+crc"))) static uint32_t add8(uint32_t crc, uint8_t byte) { return __crc32cb(crc, byte); }
};

bool has_crc_instruction() {
#if defined(__linux__)
  return (getauxval(AT_HWCAP) & HWCAP_CRC32) != 0;
#else
  return true;  // every 64-bit Apple processor has it
#endif
}

__attribute__((target("+crc"), flatten)) uint32_t crc32c_by_crc_instruction(const uint8_t* data, size_t size) {
  return crc32c_by_instruction<Armv8Step>(data, size);
}

}  // namespace

const CrcFunction crc32c_armv8 = has_crc_instruction() ? crc32c_by_crc_instruction : nullptr;

}  // namespace penstock::detail

#else

namespace penstock::detail {
const CrcFunction crc32c_armv8 = nullptr;
}  // namespace penstock::detail

#endif
