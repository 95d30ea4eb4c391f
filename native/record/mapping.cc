#include "record/mapping.h"

#include <atomic>
#include <csetjmp>
#include <csignal>
#include <cstring>
#include <mutex>

#include <sys/mman.h>

#include "foundation/pool.h"

namespace penstock {
namespace {

// Where a thread continues if a page that it copies from is gone; null while it copies nothing.
thread_local sigjmp_buf* volatile landing = nullptr;

struct sigaction previous = {};

// Whether this thread is handing a signal on: one that comes back (faulthandler raises it anew) was already handed on.
thread_local volatile bool is_handing_on = false;

void land(int signal, siginfo_t* info, void* context) {
  if (landing != nullptr) siglongjmp(*landing, 1);
  if (is_handing_on) {
    struct sigaction usual = {};
    usual.sa_handler = SIG_DFL;
    sigaction(signal, &usual, nullptr);
    return;
  }
  is_handing_on = true;
  // Not ours: to the handler that was installed before, or to the system's default action.
  if ((previous.sa_flags & SA_SIGINFO) != 0 && previous.sa_sigaction != nullptr) {
    previous.sa_sigaction(signal, info, context);
  } else if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) {
    previous.sa_handler(signal);
  } else {
    sigaction(signal, &previous, nullptr);  // the faulting instruction is run again, and meets that one
  }
  is_handing_on = false;
}

// A separate function: none of its variables changes between the two returns of sigsetjmp.
bool copy_guarded(uint8_t* to, const uint8_t* from, size_t size) {
  sigjmp_buf here;
  // Signal masks are as before: the handler blocks none.
  if (sigsetjmp(here, 0) != 0) {
    landing = nullptr;
    return false;
  }
  landing = &here;
  std::atomic_signal_fence(std::memory_order_seq_cst);  // the copy stays between the two
  std::memcpy(to, from, size);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  landing = nullptr;
  return true;
}

}  // namespace

void watch_for_lost_pages() {
  struct sigaction now;
  if (sigaction(SIGBUS, nullptr, &now) != 0) return;
  if ((now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == land) return;
  const std::lock_guard<std::mutex> lock(process_mutex());
  if (sigaction(SIGBUS, nullptr, &now) != 0) return;
  if ((now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == land) return;
  previous = now;
  struct sigaction ours = {};
  ours.sa_sigaction = land;
  ours.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
  sigemptyset(&ours.sa_mask);
  sigaction(SIGBUS, &ours, nullptr);
}

Mapping::Mapping(int fd, size_t size) : size_(size) {
  if (size == 0) return;
  void* const data = mmap(nullptr, size, PROT_READ, MAP_SHARED, fd, 0);
  if (data == MAP_FAILED) return;
  data_ = static_cast<uint8_t*>(data);
}

Mapping::~Mapping() {
  if (data_ != nullptr) munmap(data_, size_);
}

void Mapping::read_ahead() const {
  if (data_ != nullptr) (void)madvise(data_, size_, MADV_WILLNEED);
}

bool Mapping::copy(uint64_t offset, uint8_t* out, size_t size, size_t& count) const {
  count = 0;
  if (offset >= size_) return true;
  const size_t there = size_ - static_cast<size_t>(offset);
  count = size < there ? size : there;
  return copy_guarded(out, data_ + offset, count);
}

}  // namespace penstock
