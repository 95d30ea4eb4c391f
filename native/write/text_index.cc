#include "write/text_index.h"

namespace penstock {
namespace {

constexpr size_t kMostDigits = 20;  // of 64 bits

uint8_t* put_number(uint8_t* out, uint64_t number) {
  uint8_t digits[kMostDigits];
  uint8_t* at = digits + kMostDigits;
  do {
    *--at = static_cast<uint8_t>('0' + number % 10);
    number /= 10;
  } while (number != 0);
  const auto count = static_cast<size_t>(digits + kMostDigits - at);
  std::memcpy(out, at, count);
  return out + count;
}

}  // namespace

uint64_t write_text_index(const int64_t* sizes, size_t count, uint64_t offset, GrowableArray<uint8_t>& out) {
  uint8_t* const begin = out.room(count * 2 * (kMostDigits + 1));
  uint8_t* at = begin;
  for (size_t i = 0; i < count; i++) {
    const auto size = static_cast<uint64_t>(sizes[i]);
    at = put_number(at, offset);
    *at++ = ' ';
    at = put_number(at, size);
    *at++ = '\n';
    offset += size;
  }
  out.advance(static_cast<size_t>(at - begin));
  return offset;
}

}  // namespace penstock
