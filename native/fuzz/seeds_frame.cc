#include <string>

#include "seeds.h"

namespace penstock::fuzz {

std::vector<std::vector<uint8_t>> make_seeds() {
  // Commands of fuzz_frame.cc: a sound record of five bytes, then one of each sort of damage, then two sound records.
  const std::string record("\x00\x05\x00hello", 8);
  const std::string damages[] = {
      "",
      std::string("\x01\x05\x00hello\x02\x03", 10),  // a bit of the length
      std::string("\x02\x05\x00hello\x01", 9),       // a byte of the payload's CRC
      std::string("\x03\x05\x00hello\x02", 9),       // a byte of the length's CRC
      "\x04\x07junk 7b",
      "\x05\x10",      // zeros
      "\x06\x01\x1e",  // a length of 1 GiB
      "\x06\x01\x3f",  // and of 2^63
      "\x07\x03",      // a cut
      std::string("\x00\x00\x00", 3),
      std::string("\x00\x57\x02", 3) + std::string(599, 'x'),
  };
  std::vector<std::vector<uint8_t>> seeds;
  for (int choices = 0; choices < 8; choices++) {
    for (const std::string& damage : damages) {
      const std::string whole = std::string{static_cast<char>(choices), 6} + record + damage + record + record;
      seeds.emplace_back(whole.begin(), whole.end());
      const std::string at_end = std::string{static_cast<char>(choices), 2} + record + damage;
      seeds.emplace_back(at_end.begin(), at_end.end());
    }
  }
  return seeds;
}

}  // namespace penstock::fuzz
