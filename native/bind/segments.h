// The arguments of a call that reads records, as segments.
#pragma once

#include <memory>
#include <vector>

#include "bind/arguments.h"
#include "record/fetch.h"
#include "record/frame.h"

namespace penstock {

using Numbers = nb::ndarray<const uint64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using SmallNumbers = nb::ndarray<const uint32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// Segments with what keeps them alive. Each is given as
//     (file descriptor or -1, bytes or None, offset of those bytes in the file, begins, sizes[, owner])
// for records of one file, or as
//     ([(descriptor, bytes, offset), …], number of the file of each record, begins, sizes[, owner])
// where the owner keeps the descriptors open.
class Segments {
 public:
  explicit Segments(nb::sequence given);

  std::vector<Segment> items;

 private:
  void add_plain(nb::tuple parts);
  void add_mixed(nb::tuple parts);
  void add(Segment segment, nb::handle given_begins, nb::handle given_sizes);
  FrameSource source_of(nb::handle fd, nb::handle bytes, nb::handle start);

  std::vector<std::unique_ptr<BytesView>> views_;
  std::vector<nb::object> mappings_;
  std::vector<Numbers> arrays_;
  std::vector<SmallNumbers> small_arrays_;
};

}  // namespace penstock
