#include "bind/numpy.h"

#include <algorithm>
#include <cstring>

namespace penstock {
namespace {

// What NumPy keeps of an array and of a dtype, as far as it never changed.
struct ArrayFields {
  PyObject_HEAD
  uint8_t* data;
  int rank;
  Py_ssize_t* dimensions;
  Py_ssize_t* strides;
  PyObject* base;
  PyObject* descr;
  int flags;
};
struct DescrFields {
  PyObject_HEAD
  PyObject* typeobj;
  char kind, type, byteorder, former_flags;
  int type_num;
};

constexpr int kContiguous = 0x1, kAligned = 0x100, kWriteable = 0x400;
constexpr int kBoolNumber = 0, kDoubleNumber = 12, kHalfNumber = 23;

// NumPy's functions by their indexes in its table.
struct Functions {
  using New = PyObject* (*)(PyTypeObject*, int, const Py_ssize_t*, int, const Py_ssize_t*, void*, int, int, PyObject*);
  using SetBase = int (*)(PyObject*, PyObject*);

  PyTypeObject* array_type;
  New create;
  SetBase set_base;

  Functions() {
    void** const table = find_table();
    const unsigned version = reinterpret_cast<unsigned (*)()>(table[0])();
    if (version >> 24 != 1 && version >> 24 != 2) throw nb::import_error("this NumPy has another ABI than 1 or 2");
    array_type = static_cast<PyTypeObject*>(table[2]);
    create = reinterpret_cast<New>(table[93]);
    set_base = reinterpret_cast<SetBase>(table[282]);
  }

  static void** find_table() {
    for (const char* name : {"numpy._core._multiarray_umath", "numpy.core._multiarray_umath"}) {
      nb::object module = nb::steal(PyImport_ImportModule(name));
      nb::object table = module.is_valid() ? nb::getattr(module, "_ARRAY_API", nb::none()) : nb::none();
      PyErr_Clear();
      if (PyCapsule_CheckExact(table.ptr())) return static_cast<void**>(PyCapsule_GetPointer(table.ptr(), nullptr));
    }
    throw nb::import_error("NumPy has no table of functions");
  }
};

const Functions& numpy() {
  static const Functions functions;
  return functions;
}

template <typename Long>
constexpr DType signed_of() {
  return sizeof(Long) == 8 ? DType::kInt64 : DType::kInt32;
}
template <typename Long>
constexpr DType unsigned_of() {
  return sizeof(Long) == 8 ? DType::kUInt64 : DType::kUInt32;
}

DType dtype_of_number(int number) {
  static constexpr DType kByNumber[] = {DType::kBool,
                                        DType::kInt8,
                                        DType::kUInt8,
                                        DType::kInt16,
                                        DType::kUInt16,
                                        DType::kInt32,
                                        DType::kUInt32,
                                        signed_of<long>(),
                                        unsigned_of<long>(),
                                        signed_of<long long>(),
                                        unsigned_of<long long>(),
                                        DType::kFloat32,
                                        DType::kFloat64};
  if (number >= kBoolNumber && number <= kDoubleNumber) return kByNumber[number];
  return number == kHalfNumber ? DType::kFloat16 : DType::kOther;
}

int number_of_dtype(DType dtype) {
  if (dtype == DType::kFloat16) return kHalfNumber;
  for (int number = kBoolNumber; number <= kDoubleNumber; number++) {
    if (dtype_of_number(number) == dtype) return number;
  }
  throw nb::value_error("no dtype that arrays are made of");
}

std::string list_of(std::initializer_list<DType> dtypes) {
  std::string text;
  for (const DType dtype : dtypes) text += (text.empty() ? "" : ", ") + std::string(name_of(dtype));
  return text;
}

void check_dtype(DType got, const char* what, std::initializer_list<DType> dtypes) {
  for (const DType dtype : dtypes) {
    if (dtype == got) return;
  }
  if (dtypes.size() == 0 && got != DType::kOther) return;
  const std::string wanted = dtypes.size() == 0 ? "numbers or bool" : list_of(dtypes);
  need(false, what, "expected an array of " + wanted + ", got " + name_of(got));
}

}  // namespace

void import_numpy() { numpy(); }

const char* name_of(DType dtype) {
  static constexpr const char* kNames[] = {"bool",  "int8",   "uint8",   "int16",   "uint16",  "int32",        "uint32",
                                           "int64", "uint64", "float16", "float32", "float64", "another dtype"};
  return kNames[static_cast<size_t>(dtype)];
}

DType dtype_named(nb::handle name) {
  Py_ssize_t size = 0;
  const char* const text = PyUnicode_Check(name.ptr()) ? PyUnicode_AsUTF8AndSize(name.ptr(), &size) : nullptr;
  PyErr_Clear();
  if (text == nullptr) throw nb::type_error("dtype: expected the name of a dtype");
  for (auto i = static_cast<uint8_t>(DType::kBool); i < static_cast<uint8_t>(DType::kOther); i++) {
    if (std::strcmp(name_of(static_cast<DType>(i)), text) == 0) return static_cast<DType>(i);
  }
  need(false, "dtype", std::string("there is no '") + text + "' among the dtypes of batches");
  return DType::kOther;
}

size_t ArrayView::width() const {
  size_t items = 1;
  for (size_t i = 1; i < rank; i++) items *= shape(i);
  return items;
}

namespace {

// A view without a look at how the items lie.
ArrayView any_view_of(nb::handle given, const char* what, std::initializer_list<DType> dtypes) {
  if (!PyObject_TypeCheck(given.ptr(), numpy().array_type)) {
    throw nb::type_error((std::string(what) + ": expected a NumPy array").c_str());
  }
  const auto* const fields = reinterpret_cast<const ArrayFields*>(given.ptr());
  const auto* const descr = reinterpret_cast<const DescrFields*>(fields->descr);
  ArrayView view;
  view.data = fields->data;
  view.dtype = descr->byteorder == '>' ? DType::kOther : dtype_of_number(descr->type_num);
  view.rank = static_cast<size_t>(fields->rank);
  view.dimensions = fields->dimensions;
  view.is_writable = (fields->flags & kWriteable) != 0;
  check_dtype(view.dtype, what, dtypes);
  need(view.rank != 0, what, "expected one dimension or more, got none");
  need((fields->flags & kAligned) != 0, what, "expected an array that lies at a multiple of its item size");
  return view;
}

}  // namespace

ArrayView view_of(nb::handle given, const char* what, std::initializer_list<DType> dtypes) {
  const ArrayView view = any_view_of(given, what, dtypes);
  const int flags = reinterpret_cast<const ArrayFields*>(given.ptr())->flags;
  need((flags & kContiguous) != 0, what, "expected a C-contiguous array");
  return view;
}

ArrayView rows_of(nb::handle given, const char* what, std::initializer_list<DType> dtypes, size_t& stride) {
  const ArrayView view = any_view_of(given, what, dtypes);
  const auto* const fields = reinterpret_cast<const ArrayFields*>(given.ptr());
  size_t bytes = item_bytes(view.dtype);
  const bool is_whole = (fields->flags & kContiguous) != 0;  // strides of empty arrays may be anything
  for (size_t i = view.rank - 1; i > 0; i--) {
    need(is_whole || view.shape(i) <= 1 || static_cast<size_t>(fields->strides[i]) == bytes, what,
         "expected contiguous rows");
    bytes *= view.shape(i);
  }
  need(is_whole || view.rows() <= 1 || fields->strides[0] >= 0, what, "expected rows in the order of memory");
  stride = is_whole || view.rows() <= 1 ? bytes : static_cast<size_t>(fields->strides[0]);
  return view;
}

ArrayView vector_of(nb::handle given, const char* what, std::initializer_list<DType> dtypes) {
  const ArrayView view = view_of(given, what, dtypes);
  if (view.rank != 1) need(false, what, "expected one dimension, got " + std::to_string(view.rank));
  return view;
}

const uint8_t* mask_of(nb::handle given, size_t rows, const char* what) {
  if (given.is_none()) return nullptr;
  const ArrayView view = vector_of(given, what, {DType::kBool});
  if (view.rows() != rows) {
    need(false, what, "expected one for each of " + std::to_string(rows) + " rows, got " + std::to_string(view.rows()));
  }
  return view.data;
}

NewArray::NewArray(DType dtype, const size_t* shape, size_t rank) {
  need(rank <= kMostRank, "shape", "expected at most 32 dimensions");
  Py_ssize_t dimensions[kMostRank];
  size_t bytes = item_bytes(dtype);
  bool is_too_large = false, is_empty = false;
  for (size_t i = 0; i < rank; i++) {
    is_empty |= shape[i] == 0;
    is_too_large |= shape[i] > PY_SSIZE_T_MAX || __builtin_mul_overflow(bytes, shape[i], &bytes);
    dimensions[i] = static_cast<Py_ssize_t>(shape[i]);
  }
  need(is_empty || (!is_too_large && bytes <= PY_SSIZE_T_MAX), "shape", "more bytes than any memory has");
  auto* const buffer = new Buffer(is_empty ? 0 : bytes);
  PyObject* const owner = PyCapsule_New(
      buffer, nullptr, [](PyObject* capsule) { delete static_cast<Buffer*>(PyCapsule_GetPointer(capsule, nullptr)); });
  if (owner == nullptr) {
    delete buffer;
    throw nb::python_error();
  }
  data = buffer->data();
  object = nb::steal(numpy().create(numpy().array_type, static_cast<int>(rank), dimensions, number_of_dtype(dtype),
                                    nullptr, data, 0, kContiguous | kAligned | kWriteable, nullptr));
  if (!object.is_valid()) {
    Py_DECREF(owner);
    throw nb::python_error();
  }
  // Takes the owner over, also where it fails.
  if (numpy().set_base(object.ptr(), owner) != 0) throw nb::python_error();
}

nb::object array_over(DType dtype, std::initializer_list<size_t> shape, void* data, std::shared_ptr<Buffer> owner) {
  Py_ssize_t dimensions[kMostRank];
  std::copy(shape.begin(), shape.end(), dimensions);
  auto* const shared = new std::shared_ptr<Buffer>(std::move(owner));
  PyObject* const capsule = PyCapsule_New(shared, nullptr, [](PyObject* given) {
    delete static_cast<std::shared_ptr<Buffer>*>(PyCapsule_GetPointer(given, nullptr));
  });
  if (capsule == nullptr) {
    delete shared;
    throw nb::python_error();
  }
  nb::object array =
      nb::steal(numpy().create(numpy().array_type, static_cast<int>(shape.size()), dimensions, number_of_dtype(dtype),
                               nullptr, data, 0, kContiguous | kAligned | kWriteable, nullptr));
  if (!array.is_valid()) {
    Py_DECREF(capsule);
    throw nb::python_error();
  }
  if (numpy().set_base(array.ptr(), capsule) != 0) throw nb::python_error();
  return array;
}

}  // namespace penstock
