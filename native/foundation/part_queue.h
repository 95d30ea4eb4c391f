// Jobs whose parts threads run without Python, oldest job first. A thread returns to Python only where it is needed:
// one thread at a time, the coordinator, as long as nothing fails. Many threads that wait for Python's lock cost more
// than their work there.
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
#include <thread>

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
  // Work for Python: a part that could not be done here, or (no part) the end of a job.
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

  // Adds a job, which must live until its end is returned, or all threads have returned after stop(). False if there is
  // a job of that number, or the job has no parts.
  bool add(uint64_t number, PartJob& job);

  // Runs parts until this thread is needed. No outcome is returned after wake() or stop(), if the number of wake-ups of
  // all threads is no longer `seen`, or, if `drains`, when there are neither parts to begin nor ends to return. A
  // thread that receives the end of a job, or is woken by wake(), is the coordinator until it calls this again, or
  // release(); meanwhile no other thread becomes one.
  std::optional<Outcome> work(uint64_t seen, bool drains);
  // The same without running parts or waiting: false if this thread is not needed now.
  bool poll(uint64_t seen, std::optional<Outcome>& outcome);
  void release();  // ends the coordination by this thread

  // Notes that a part which could not be done here was done elsewhere. True if it was the last of its job.
  bool close_part(uint64_t number);

  void wake();      // one thread, now or when it has done its part
  void wake_all();  // all threads that are in work(), or enter it with the number of wake-ups from before
  void stop();

  // Whether there are parts that no thread has begun, or ends of jobs that were not returned.
  bool has_work() const;
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
    std::deque<uint64_t> open;    // numbers of jobs with parts that no thread has begun, in order
    std::deque<uint64_t> done;    // numbers of jobs whose end was not returned yet
    std::thread::id coordinator;  // the thread that works in Python, if any
    size_t num_waiting = 0;
    uint64_t num_wake_ups = 0;
    bool is_one_wanted = false;  // one is enough: it does all that there is to do
    bool is_stopped = false;
  };
  static bool close(Shared& shared, uint64_t number);
  static bool find_outcome(Shared& shared, uint64_t seen, std::optional<Outcome>& outcome);
  static bool end_coordination(Shared& shared);

  std::unique_ptr<Shared> shared_;
  pid_t pid_;
};

}  // namespace penstock
