// Jobs whose parts threads run without Python, oldest job first. A thread leaves only where Python is needed.
#pragma once

#include <unistd.h>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

namespace penstock {

class PartJob {
 public:
  virtual ~PartJob() = default;
  virtual size_t num_parts() const = 0;
  // Does a part; any thread may call this, once for each part. False: it could not, and nothing of it counts.
  virtual bool run(size_t part) noexcept = 0;
};

class PartQueue {
 public:
  // What a thread is needed for: a part that could not be done here, or (no part) the end of a job.
  struct Outcome {
    uint64_t number;
    std::optional<size_t> part;
  };

  PartQueue() : shared_(std::make_unique<Shared>()), pid_(getpid()) {}
  // In a forked process the threads are gone, but their marks on the condition are not: it cannot be destroyed there.
  ~PartQueue() {
    if (pid_ != getpid()) static_cast<void>(shared_.release());
  }
  PartQueue(const PartQueue&) = delete;
  PartQueue& operator=(const PartQueue&) = delete;

  // Adds a job, which must live until its end is returned, or all threads have left after stop(). False if there is a
  // job of that number, or the job has no parts.
  bool add(uint64_t number, PartJob& job);

  // Runs parts until this thread is needed. Nothing is returned after wake() or stop(), if the number of wake-ups of
  // all threads is no longer `seen`, or, if `drains`, when no part is left to begin.
  std::optional<Outcome> work(uint64_t seen, bool drains);

  // Notes that a part which could not be done here was done elsewhere. True if it was the last of its job.
  bool close_part(uint64_t number);

  void wake();      // one thread, now or when it has done its part
  void wake_all();  // all threads that are in work(), or enter it with the number of wake-ups from before
  void stop();

  bool has_parts() const;
  uint64_t num_wake_ups() const;

 private:
  struct Entry {
    PartJob* job = nullptr;
    size_t next = 0, num_left = 0;
  };
  struct Shared {
    std::mutex mutex;
    std::condition_variable changed;
    std::map<uint64_t, Entry> entries;
    std::deque<uint64_t> open;  // numbers of jobs with parts that no thread has begun, in order
    size_t num_waiting = 0;
    uint64_t num_wake_ups = 0;
    bool is_one_wanted = false;  // one is enough: it does all that there is to do
    bool is_stopped = false;
  };
  static bool close(Shared& shared, uint64_t number);

  std::unique_ptr<Shared> shared_;
  pid_t pid_;
};

}  // namespace penstock
