// The slices of a batch, and the queue from which threads take them. See src/penstock/_native.pyi.
#include "bind/batch_slices.h"

#include <unordered_map>
#include <utility>

#include "bind/arguments.h"
#include "foundation/part_queue.h"

using namespace nb::literals;

namespace penstock {
namespace {

// Jobs stay alive until their end is returned. One that ends by stop() stays until the queue is deleted or cleared: a
// thread may be at work on it.
class BoundPartQueue {
 public:
  void add(uint64_t number, nb::object job) {
    BatchSlices& slices = *nb::cast<BoundBatchSlices&>(job).slices;
    need(held_.count(number) == 0, "there is a job of that number");
    held_.emplace(number, std::move(job));
    queue_.add(number, slices);
  }

  // (number, part) of a part that Python has to do, (number, None) of a job that is done, or None.
  nb::object work(uint64_t seen, bool drains) {
    std::optional<PartQueue::Outcome> outcome;
    // First with Python's lock: the thread that has it does all that there is to do.
    if (!queue_.poll(seen, outcome)) {
      const Inside inside(num_inside_);
      nb::gil_scoped_release unlocked;
      outcome = queue_.work(seen, drains);
    }
    if (!outcome) return nb::none();
    if (outcome->part) return nb::make_tuple(outcome->number, *outcome->part);
    held_.erase(outcome->number);
    return nb::make_tuple(outcome->number, nb::none());
  }

  bool close_part(uint64_t number) {
    const bool is_last = queue_.close_part(number);
    if (is_last) held_.erase(number);
    return is_last;
  }

  // Drops the jobs that stop() left, unless a thread is inside.
  void clear() {
    if (num_inside_ == 0) held_.clear();
  }

  PartQueue& queue() { return queue_; }

 private:
  // Counts a thread, with Python's lock on both ends.
  struct Inside {
    explicit Inside(size_t& count) : count_(count) { count_++; }
    ~Inside() { count_--; }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;
    size_t& count_;
  };

  PartQueue queue_;
  // Guarded by Python's lock.
  std::unordered_map<uint64_t, nb::object> held_;
  size_t num_inside_ = 0;
};

nb::object take_piece(BoundBatchSlices& self, size_t part) {
  if (part >= self.slices->num_parts()) throw nb::index_error("there is no such part");
  std::unique_ptr<Piece> piece = self.slices->take_piece(part);
  if (piece == nullptr) return nb::none();
  return nb::cast(piece.release(), nb::rv_policy::take_ownership);
}

bool run(BoundBatchSlices& self, size_t part) {
  if (part >= self.slices->num_parts()) throw nb::index_error("there is no such part");
  nb::gil_scoped_release unlocked;
  return self.slices->run(part);
}

}  // namespace

void bind_slices(nb::module_& m) {
  nb::class_<BoundBatchSlices>(m, "BatchSlices")
      .def("run", &run, "part"_a)
      .def("take_piece", &take_piece, "part"_a)
      .def_prop_ro("has_pieces", [](const BoundBatchSlices& self) { return self.slices->has_pieces(); })
      .def_prop_ro("num_parts", [](const BoundBatchSlices& self) { return self.slices->num_parts(); })
      .def_prop_ro("read_seconds", [](const BoundBatchSlices& self) { return self.slices->read_seconds(); })
      .def_prop_ro("transform_seconds", [](const BoundBatchSlices& self) { return self.slices->transform_seconds(); });
  nb::class_<BoundPartQueue>(m, "PartQueue")
      .def(nb::init<>())
      .def("add", &BoundPartQueue::add, "number"_a, "job"_a)
      .def("work", &BoundPartQueue::work, "seen"_a, "drains"_a)
      .def("close_part", &BoundPartQueue::close_part, "number"_a)
      .def("release", [](BoundPartQueue& self) { self.queue().release(); })
      .def("wake", [](BoundPartQueue& self) { self.queue().wake(); })
      .def("wake_all", [](BoundPartQueue& self) { self.queue().wake_all(); })
      .def("stop", [](BoundPartQueue& self) { self.queue().stop(); })
      .def("clear", &BoundPartQueue::clear)
      .def_prop_ro("has_work", [](BoundPartQueue& self) { return self.queue().has_work(); })
      .def_prop_ro("num_wake_ups", [](BoundPartQueue& self) { return self.queue().num_wake_ups(); });
}

}  // namespace penstock
