// Arguments that are checked before they are read: lengths of tuples, types, alignment of arrays.
#pragma once

#include <string>

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

}  // namespace penstock
