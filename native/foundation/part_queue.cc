#include "foundation/part_queue.h"

#include <algorithm>

namespace penstock {

bool PartQueue::add(uint64_t number, PartJob& job) {
  const size_t num_parts = job.num_parts();
  if (num_parts == 0) return false;
  size_t num_waiting;
  {
    const std::lock_guard<std::mutex> lock(shared_->mutex);
    if (!shared_->entries.try_emplace(number, Entry{&job, 0, num_parts}).second) return false;
    auto& open = shared_->open;
    open.insert(std::upper_bound(open.begin(), open.end(), number), number);
    num_waiting = shared_->num_waiting;
  }
  for (size_t i = std::min(num_parts, num_waiting); i > 0; i--) shared_->changed.notify_one();
  return true;
}

// Whether this thread is needed, and what for.
bool PartQueue::find_outcome(Shared& shared, uint64_t seen, std::optional<Outcome>& outcome) {
  if (shared.is_stopped || shared.num_wake_ups != seen) {
    // This thread may take long to return: another one does its work here.
    if (shared.is_one_wanted || !shared.done.empty()) shared.changed.notify_one();
    return true;
  }
  if (shared.coordinator != std::thread::id()) return false;
  if (!shared.done.empty()) {
    outcome = Outcome{shared.done.front(), std::nullopt};
    shared.done.pop_front();
  } else if (!shared.is_one_wanted) {
    return false;
  }
  shared.is_one_wanted = false;  // the coordinator checks everything before it returns
  shared.coordinator = std::this_thread::get_id();
  return true;
}

bool PartQueue::end_coordination(Shared& shared) {
  if (shared.coordinator != std::this_thread::get_id()) return false;
  shared.coordinator = std::thread::id();
  return true;
}

bool PartQueue::poll(uint64_t seen, std::optional<Outcome>& outcome) {
  const std::lock_guard<std::mutex> lock(shared_->mutex);
  end_coordination(*shared_);
  return find_outcome(*shared_, seen, outcome);
}

void PartQueue::release() {
  {
    const std::lock_guard<std::mutex> lock(shared_->mutex);
    if (!end_coordination(*shared_)) return;
  }
  shared_->changed.notify_all();
}

std::optional<PartQueue::Outcome> PartQueue::work(uint64_t seen, bool drains) {
  Shared& shared = *shared_;
  std::unique_lock<std::mutex> lock(shared.mutex);
  end_coordination(shared);
  std::optional<Outcome> outcome;
  while (!find_outcome(shared, seen, outcome)) {
    if (shared.open.empty()) {
      if (drains && shared.done.empty()) {
        shared.changed.notify_all();  // others may wait for ends that this thread has returned
        return std::nullopt;
      }
      shared.num_waiting++;
      shared.changed.wait(lock);
      shared.num_waiting--;
      continue;
    }
    const uint64_t number = shared.open.front();
    Entry& entry = shared.entries[number];
    PartJob& job = *entry.job;
    const size_t part = entry.next++;
    if (entry.next == job.num_parts()) shared.open.pop_front();
    lock.unlock();
    const bool is_done = job.run(part);
    lock.lock();
    if (!is_done) return Outcome{number, part};
    if (close(shared, number)) shared.done.push_back(number);
  }
  return outcome;
}

bool PartQueue::close(Shared& shared, uint64_t number) {
  const auto found = shared.entries.find(number);
  if (found == shared.entries.end() || --found->second.num_left != 0) return false;
  shared.entries.erase(found);
  return true;
}

bool PartQueue::close_part(uint64_t number) {
  const std::lock_guard<std::mutex> lock(shared_->mutex);
  return close(*shared_, number);
}

void PartQueue::wake() {
  {
    const std::lock_guard<std::mutex> lock(shared_->mutex);
    shared_->is_one_wanted = true;
  }
  shared_->changed.notify_one();
}

void PartQueue::wake_all() {
  {
    const std::lock_guard<std::mutex> lock(shared_->mutex);
    shared_->num_wake_ups++;
  }
  shared_->changed.notify_all();
}

void PartQueue::stop() {
  {
    const std::lock_guard<std::mutex> lock(shared_->mutex);
    shared_->is_stopped = true;
    shared_->open.clear();
  }
  shared_->changed.notify_all();
}

bool PartQueue::has_work() const {
  const std::lock_guard<std::mutex> lock(shared_->mutex);
  return !shared_->open.empty() || !shared_->done.empty();
}

uint64_t PartQueue::num_wake_ups() const {
  const std::lock_guard<std::mutex> lock(shared_->mutex);
  return shared_->num_wake_ups;
}

}  // namespace penstock
