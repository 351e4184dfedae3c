#include "internal_key.h"

#include <cstdio>

#include "coding.h"

namespace leveldb {

bool ParseInternalKey(const Slice& bytes, InternalKey* key) {
  constexpr size_t kNumber = sizeof(uint64_t);
  constexpr uint64_t kDelete = 0, kPut = 1;
  if (bytes.size() < kNumber) return false;
  const uint64_t number = coding::DecodeFixed64(bytes.data() + bytes.size() - kNumber);
  const uint64_t type = number & 0xff;
  key->user_key = Slice(bytes.data(), bytes.size() - kNumber);
  key->sequence = number >> 8;
  key->is_put = type == kPut;
  return type == kPut || type == kDelete;
}

std::string Escaped(const Slice& bytes) {
  std::string text;
  for (size_t i = 0; i < bytes.size(); ++i) {
    const char byte = bytes[i];
    if (byte >= ' ' && byte <= '~') {
      text.push_back(byte);
      continue;
    }
    char hex[8];
    std::snprintf(hex, sizeof(hex), "\\x%02x", static_cast<unsigned char>(byte));
    text.append(hex);
  }
  return text;
}

}  // namespace leveldb
