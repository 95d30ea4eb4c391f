// Inputs to start from; each target has its own.
#pragma once

#include <cstdint>
#include <vector>

namespace penstock::fuzz {

std::vector<std::vector<uint8_t>> make_seeds();

}  // namespace penstock::fuzz
