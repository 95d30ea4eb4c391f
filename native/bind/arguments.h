// Arguments that are checked before they are read: lengths of tuples, types, alignment of arrays.
#pragma once

#include <string>
#include <vector>

#include "bind/buffers.h"

namespace penstock {

template <typename T>
using Array = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// A ValueError, unless it holds.
inline void need(bool holds, const char* what) {
  if (!holds) throw nb::value_error(what);
}

// An argument as it is. Nothing is converted: a copy of an array in another type would be gone before it is read.
template <typename T>
T value_of(nb::handle given, const char* what) {
  T value;
  if (!nb::try_cast<T>(given, value, false)) throw nb::type_error((std::string("not fit as ") + what).c_str());
  return value;
}

template <typename T>
bool is_aligned(const void* data) {
  return reinterpret_cast<uintptr_t>(data) % alignof(T) == 0;
}

template <typename T>
Array<T> array_of(nb::handle given, const char* what) {
  const auto array = value_of<Array<T>>(given, what);
  need(is_aligned<T>(array.data()), "an array does not lie at a multiple of its item size");
  return array;
}

// A tuple of `least` to `most` items: the accessors of a tuple do not check how long it is, so that every tuple that
// comes from Python passes here first.
inline nb::tuple tuple_of(nb::handle given, size_t least, size_t most, const char* what) {
  const auto parts = value_of<nb::tuple>(given, what);
  if (parts.size() < least || parts.size() > most) {
    const std::string expected =
        least == most ? std::to_string(least) : std::to_string(least) + " to " + std::to_string(most);
    throw nb::value_error(
        (std::string(what) + ": expected a tuple of " + expected + " items, got " + std::to_string(parts.size()))
            .c_str());
  }
  return parts;
}
inline nb::tuple tuple_of(nb::handle given, size_t size, const char* what) { return tuple_of(given, size, size, what); }

// An array argument that may be None, with what keeps it alive.
template <typename T>
const T* data_or_null(nb::handle given, size_t count, std::vector<nb::object>& kept, const char* what) {
  if (given.is_none()) return nullptr;
  const auto array = array_of<T>(given, what);
  if (array.shape(0) != count) throw nb::value_error((std::string(what) + " has another length than rows").c_str());
  kept.push_back(nb::borrow(given));
  return array.data();
}

// The positions of strings in an arena, checked.
struct Strings {
  Array<uint8_t> arena;
  Array<int64_t> starts, stops;

  Strings(nb::handle bytes, nb::handle begins, nb::handle ends)
      : arena(array_of<uint8_t>(bytes, "arena")),
        starts(array_of<int64_t>(begins, "starts")),
        stops(array_of<int64_t>(ends, "stops")) {
    need(starts.shape(0) == stops.shape(0), "starts and stops differ in length");
    const auto size = static_cast<int64_t>(arena.shape(0));
    for (size_t i = 0; i < starts.shape(0); i++) {
      const int64_t a = starts.data()[i], b = stops.data()[i];
      need(0 <= a && a <= b && b <= size, "a string is not inside its arena");
    }
  }
  size_t size() const { return starts.shape(0); }
  Span operator[](size_t i) const {
    return Span{arena.data() + starts.data()[i], static_cast<size_t>(stops.data()[i] - starts.data()[i])};
  }
};

// Offsets of `count` items, checked: monotone, from 0 or above, to at most `limit`. Null for None.
inline const int64_t* offsets_of(nb::handle given, size_t count, int64_t limit, std::vector<nb::object>& kept) {
  if (given.is_none()) return nullptr;
  const auto array = array_of<int64_t>(given, "offsets");
  need(array.shape(0) != 0 && array.shape(0) - 1 == count,
       "offsets have another length than what they divide, plus one");
  const int64_t* const offsets = array.data();
  need(offsets[0] >= 0 && offsets[count] <= limit, "offsets are not inside the values");
  for (size_t i = 0; i < count; i++) need(offsets[i] <= offsets[i + 1], "offsets decrease");
  kept.push_back(nb::borrow(given));
  return offsets;
}

}  // namespace penstock
