// What a record holds for a field, by the general parser alone: no prefix, no learnt key, no block of rows.
#pragma once

#include "decode/plan.h"
#include "record/status.h"
#include "rows.h"

namespace penstock::fuzz {

struct Expected {
  Status status = Status::kOk;  // kOk: the row can be used
  bool present = false;
  RowBytes row;
};

// Whether the messages around the values of a record are well formed; with `lists`, as a SequenceExample.
Status check_maps(Span payload, bool lists, bool strict);

// The field's values, its default where the record lacks it, or the fault.
Expected expect(Span payload, const FieldSpec& field, bool strict);

}  // namespace penstock::fuzz
