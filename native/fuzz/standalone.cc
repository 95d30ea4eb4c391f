// Runs a fuzz target without a fuzzer: damages the seeds in a fixed order of chance, the same inputs on every machine.
//
//   TARGET [number of inputs]     run them
//   TARGET --write FOLDER         write the seeds there, for libFuzzer to start from
//   TARGET FILE…                  run the inputs in these files
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "seeds.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace penstock::fuzz {
namespace {

using Bytes = std::vector<uint8_t>;

class Chance {
 public:
  // A number below `bound`, 0 if that is 0.
  size_t below(size_t bound) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return bound == 0 ? 0 : static_cast<size_t>(state_ >> 33) % bound;
  }

 private:
  uint64_t state_ = 0x9e3779b97f4a7c15u;
};

void damage(Bytes& data, const std::vector<Bytes>& seeds, Chance& chance) {
  const auto at = [&] { return data.begin() + static_cast<std::ptrdiff_t>(chance.below(data.size() + 1)); };
  const Bytes& other = seeds[chance.below(seeds.size())];
  const size_t begin = chance.below(other.size());
  const size_t length = std::min(other.size() - begin, 1 + chance.below(12));
  const auto piece = other.begin() + static_cast<std::ptrdiff_t>(begin);
  switch (chance.below(8)) {
    case 0:
      data.insert(at(), piece, piece + static_cast<std::ptrdiff_t>(length));
      return;
    case 1: {
      const auto from = at();
      data.erase(from, from + static_cast<std::ptrdiff_t>(
                                  std::min<size_t>(1 + chance.below(4), static_cast<size_t>(data.end() - from))));
      return;
    }
    case 2:
      if (chance.below(4) == 0) data.resize(chance.below(data.size() + 1));
      return;
    case 3:
      if (!data.empty()) data[chance.below(data.size())] = static_cast<uint8_t>(chance.below(256));
      return;
    case 4:
      if (!data.empty()) data[chance.below(data.size())] = static_cast<uint8_t>(0x80 | chance.below(2) * 0x7f);
      return;
    default:
      if (!data.empty()) data[chance.below(data.size())] ^= static_cast<uint8_t>(1 << chance.below(8));
  }
}

const Bytes* current = nullptr;

// Keeps the input that broke a law, for a debugger to run again.
void save_current() {
  if (current == nullptr) return;
  std::ofstream file("broken-input", std::ios::binary);
  file.write(reinterpret_cast<const char*>(current->data()), static_cast<std::streamsize>(current->size()));
  std::fprintf(stderr, "the input is in ./broken-input\n");
}

void run(const Bytes& input) {
  // A separate block, so that the sanitizer sees where the input ends.
  const Bytes tight(input);
  current = &tight;
  LLVMFuzzerTestOneInput(tight.data(), tight.size());
  current = nullptr;
}

void run_damaged(size_t num_inputs) {
  const std::vector<Bytes> seeds = make_seeds();
  Chance chance;
  for (const Bytes& seed : seeds) run(seed);
  for (size_t i = 0; i < num_inputs; i++) {
    Bytes data = seeds[chance.below(seeds.size())];
    for (size_t times = 1 + chance.below(3); times > 0; times--) damage(data, seeds, chance);
    run(data);
  }
  std::printf("%zu seeds and %zu damaged inputs: no law broken\n", seeds.size(), num_inputs);
}

void write_seeds(const std::string& folder) {
  const std::vector<Bytes> seeds = make_seeds();
  for (size_t i = 0; i < seeds.size(); i++) {
    std::ofstream file(folder + "/seed-" + std::to_string(i), std::ios::binary);
    file.write(reinterpret_cast<const char*>(seeds[i].data()), static_cast<std::streamsize>(seeds[i].size()));
  }
}

int main_of(const std::vector<std::string>& arguments) {
  constexpr size_t kNumInputs = 20000;
  if (arguments.size() == 2 && arguments[0] == "--write") {
    write_seeds(arguments[1]);
  } else if (arguments.empty() || arguments[0].find_first_not_of("0123456789") == std::string::npos) {
    run_damaged(arguments.empty() ? kNumInputs : std::strtoull(arguments[0].c_str(), nullptr, 10));
  } else {
    for (const std::string& path : arguments) {
      std::ifstream file(path, std::ios::binary);
      run(Bytes(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()));
    }
  }
  return 0;
}

}  // namespace
}  // namespace penstock::fuzz

int main(int count, char** words) {
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_set_death_callback(penstock::fuzz::save_current);
#endif
  std::signal(SIGILL, [](int) {  // __builtin_trap()
    penstock::fuzz::save_current();
    std::_Exit(1);
  });
  return penstock::fuzz::main_of(std::vector<std::string>(words + 1, words + count));
}
