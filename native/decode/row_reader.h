// Any rows of open files into columns: located, read, checked and decoded without Python.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "decode/decode.h"
#include "record/fetch.h"
#include "record/row_locations.h"

namespace penstock {

class RowReader {
 public:
  // All of these must outlive the reader. There is one source and one identity for each file.
  RowReader(const RowLocations& locations, std::vector<FrameSource> files,
            std::vector<RowLocations::FileIdentity> identities, const Decoder& decoder)
      : locations_(locations), files_(std::move(files)), identities_(std::move(identities)), decoder_(decoder) {}

  const Decoder& decoder() const { return decoder_; }

  // Decodes rows in that order. False if there is no such row, or one of their files has changed.
  bool read(const int64_t* rows, size_t count, Decoded& out) const;

 private:
  const RowLocations& locations_;
  std::vector<FrameSource> files_;
  std::vector<RowLocations::FileIdentity> identities_;
  const Decoder& decoder_;
};

}  // namespace penstock
