// Is this UTF-8, and is it text?
#pragma once

#include "foundation/bytes.h"

namespace penstock {

// Whether the bytes are well-formed UTF-8 (no overlong forms, no surrogates, nothing above U+10FFFF).
bool is_utf8(Span bytes);

// Whether they are UTF-8 that a person might read: no control characters but tab, line feed and carriage return.
bool is_text(Span bytes);

}  // namespace penstock
