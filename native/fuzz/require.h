// A law that must hold for every input: a fuzzer takes the trap for a crash, and says which input it was.
#pragma once

#include <cstdio>

#define REQUIRE(law)                                                         \
  do {                                                                       \
    if (!(law)) {                                                            \
      std::fprintf(stderr, "%s:%d: broken: %s\n", __FILE__, __LINE__, #law); \
      __builtin_trap();                                                      \
    }                                                                        \
  } while (false)
