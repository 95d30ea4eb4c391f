// Any rows into columns: located, read, checked and decoded without Python.
#pragma once

#include <cstddef>
#include <cstdint>

#include "decode/decode.h"
#include "record/row_finder.h"

namespace penstock {

class RowReader {
 public:
  // Both must outlive the reader.
  RowReader(const RowFinder& finder, const Decoder& decoder) : finder_(finder), decoder_(decoder) {}

  const Decoder& decoder() const { return decoder_; }

  // Decodes rows in that order. False if there is no such row, or one of their files cannot be read or has changed.
  bool read(const int64_t* rows, size_t count, Decoded& out) const;

 private:
  const RowFinder& finder_;
  const Decoder& decoder_;
};

}  // namespace penstock
