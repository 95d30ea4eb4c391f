#include <string>

#include "seeds.h"

namespace penstock::fuzz {

std::vector<std::vector<uint8_t>> make_seeds() {
  // What a field's values are taken from: few bits, many, strings of all the lengths that count.
  std::string many;
  for (int i = 0; i < 400; i++) many.push_back(static_cast<char>(i * 37 + i / 7));
  const std::string values[] = {"",
                                std::string(200, '\x01'),
                                std::string(300, '\xc5'),
                                many,
                                std::string(60, '\xff') + std::string(60, '\xe9'),
                                std::string("\x7f\x80\xff\xbf\x3f", 5) + many};
  // Bits of the first byte: see LLVMFuzzerTestOneInput of fuzz_encode.cc; of a field's: Material::choose_layout.
  const uint8_t choices[] = {0x00, 0x20, 0x21, 0x60, 0x61, 0xe0, 0xe1, 0xe2, 0xe3};
  std::vector<std::vector<uint8_t>> seeds;
  for (uint8_t first : choices) {
    for (int layout = 0; layout < 256; layout += 5) {
      std::string input(1, static_cast<char>(first));
      const std::string& own = values[static_cast<size_t>(layout / 5) % std::size(values)];
      for (int i = 0; i < 11; i++) {
        // Every key in the first seeds; later ones leave some out, so that values go further.
        if (layout > 100 && (i + layout) % 3 != 0) {
          input.push_back('\0');
          continue;
        }
        input.push_back('\x01');
        input.push_back(static_cast<char>(layout + i * 37));
        input += own.substr(0, own.size() / 4);
      }
      input += own;
      seeds.emplace_back(input.begin(), input.end());
    }
  }
  return seeds;
}

}  // namespace penstock::fuzz
