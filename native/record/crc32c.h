// CRC32C (Castagnoli) and the masked form in which TFRecord stores it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock {

// CRC32C of `size` bytes, by the fastest way this processor has.
uint32_t crc32c(const uint8_t* data, size_t size);

// The same by table alone: for processors without the instruction, and as a check on the fast ways.
uint32_t crc32c_by_table(const uint8_t* data, size_t size);

// Name of the way that crc32c() uses: "sse4.2", "armv8" or "table".
const char* crc32c_method();

// TFRecord rotates and shifts each CRC, so that a CRC over data that holds CRCs stays a good check.
inline uint32_t mask_crc(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8u; }

inline uint32_t masked_crc32c(const uint8_t* data, size_t size) { return mask_crc(crc32c(data, size)); }

namespace detail {

using CrcFunction = uint32_t (*)(const uint8_t*, size_t);

// Null where the processor lacks the instruction; on x86, also where it lacks PCLMULQDQ.
extern const CrcFunction crc32c_sse42, crc32c_armv8;

// Table that advances a CRC over `count` zero bytes: what joins the CRCs of neighbouring stretches.
class ZeroShift {
 public:
  explicit ZeroShift(size_t count);
  uint32_t operator()(uint32_t crc) const {
    return table_[0][crc & 255] ^ table_[1][(crc >> 8) & 255] ^ table_[2][(crc >> 16) & 255] ^ table_[3][crc >> 24];
  }

 private:
  uint32_t table_[4][256];
};

// The instruction has a latency of three cycles and a throughput of one: three stretches are computed in parallel.
inline constexpr size_t kLongStretch = 2048;
inline constexpr size_t kShortStretch = 128;

extern const ZeroShift& long_shift();
extern const ZeroShift& short_shift();

// Runs Step over three neighbouring stretches at once while the data lasts, then word by word.
// Step offers add64(crc, word), add32, add8; it is the processor's instruction.
template <typename Step>
inline uint32_t crc32c_by_instruction(const uint8_t* p, size_t n) {
  uint64_t crc = 0xffffffffu;
  const auto run_three = [&](size_t stretch, const ZeroShift& shift) __attribute__((always_inline)) {
    while (n >= 3 * stretch) {
      uint64_t second = 0, third = 0;
      for (const uint8_t* const end = p + stretch; p < end; p += 8) {
        crc = Step::add64(crc, p);
        second = Step::add64(second, p + stretch);
        third = Step::add64(third, p + 2 * stretch);
      }
      crc = shift(static_cast<uint32_t>(crc)) ^ second;
      crc = shift(static_cast<uint32_t>(crc)) ^ third;
      p += 2 * stretch;
      n -= 3 * stretch;
    }
  };
  if (n >= 3 * kLongStretch) run_three(kLongStretch, long_shift());
  if (n >= 3 * kShortStretch) run_three(kShortStretch, short_shift());
  for (; n >= 8; n -= 8, p += 8) crc = Step::add64(crc, p);
  uint32_t rest = static_cast<uint32_t>(crc);
  if (n & 4) {
    rest = Step::add32(rest, p);
    p += 4;
  }
  for (n &= 3; n > 0; n--) rest = Step::add8(rest, *p++);
  return rest ^ 0xffffffffu;
}

}  // namespace detail
}  // namespace penstock
