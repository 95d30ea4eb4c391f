#include "write/map_entry.h"

#include <utility>

namespace penstock {

// A short entry with k bytes of key and P bytes of payload is
//     0a k+8+P   0a k KEY   12 P+4   KIND P+2   0a P   payload
// where all before the payload is a function of P.
EncodeField::EncodeField(std::string name, Source from, bool in_lists)
    : key(std::move(name)), source(from), is_feature_list(in_lists) {
  if (key.size() + 10 > kShortPrefix) return;
  const auto k = static_cast<uint8_t>(key.size());
  const uint8_t before[] = {kFirstTag, static_cast<uint8_t>(k + 8), kFirstTag, k};
  const uint8_t behind[] = {kSecondTag, 4, kind_tag(), 2, kFirstTag, 0};
  std::memcpy(prefix, before, sizeof before);
  std::memcpy(prefix + sizeof before, key.data(), k);
  std::memcpy(prefix + sizeof before + k, behind, sizeof behind);
}

uint8_t EncodeField::kind_tag() const {
  switch (source) {
    case Source::kInts:
      return 0x1a;
    case Source::kFloats:
      return 0x12;
    default:
      return 0x0a;
  }
}

uint8_t* put_entry(uint8_t* out, const EncodeField& field, size_t value) {
  const size_t key = field.key.size();
  out = put_tagged(out, kFirstTag, tagged_size(key) + tagged_size(value));
  out = put_tagged(out, kFirstTag, key);
  std::memcpy(out, field.key.data(), key);
  return put_tagged(out + key, kSecondTag, value);
}

uint8_t* put_long_entry(uint8_t* out, const EncodeField& field, size_t payload) {
  const size_t list = tagged_size(payload);
  out = put_tagged(put_entry(out, field, tagged_size(list)), field.kind_tag(), list);
  return put_tagged(out, kFirstTag, payload);
}

}  // namespace penstock
