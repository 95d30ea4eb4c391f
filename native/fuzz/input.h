// The bytes of a fuzzer's input, taken from the front; when they are used up, zeros.
#pragma once

#include "foundation/bytes.h"

namespace penstock::fuzz {

class Input {
 public:
  Input(const uint8_t* data, size_t size) : rest_{data, size} {}

  bool empty() const { return rest_.size == 0; }

  uint8_t byte() {
    const Span one = take(1);
    return one.size == 0 ? 0 : one.data[0];
  }

  // A number below 65536, so that lengths are met and not only overrun.
  size_t number() {
    const size_t low = byte();
    return low | static_cast<size_t>(byte()) << 8;
  }

  // At most so many bytes.
  Span take(size_t size) {
    const Span taken{rest_.data, size < rest_.size ? size : rest_.size};
    rest_ = Span{rest_.data + taken.size, rest_.size - taken.size};
    return taken;
  }

  Span rest() { return take(rest_.size); }

 private:
  Span rest_;
};

}  // namespace penstock::fuzz
