// The orientation that EXIF data keep of a photo.
#pragma once

#include "foundation/bytes.h"

namespace penstock {

// 1 to 8 as EXIF numbers them; 1, upright, where there is none, or the data make no sense. `data` begin with the header
// of a TIFF file, or with "Exif" before it.
uint8_t read_orientation(Span data);

}  // namespace penstock
