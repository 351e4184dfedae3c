#include "hash.h"

#include "coding.h"

namespace leveldb {

uint32_t Hash(const Slice& bytes, uint32_t seed) {
  constexpr uint32_t kFactor = 0xc6a4a793;
  uint32_t hash = seed ^ (static_cast<uint32_t>(bytes.size()) * kFactor);
  const char* at = bytes.data();
  size_t left = bytes.size();
  for (; left >= 4; left -= 4, at += 4) {
    hash = (hash + coding::DecodeFixed32(at)) * kFactor;
    hash ^= hash >> 16;
  }
  if (left == 0) return hash;
  for (size_t i = 0; i < left; ++i) hash += static_cast<uint32_t>(static_cast<unsigned char>(at[i])) << (8 * i);
  hash *= kFactor;
  return hash ^ (hash >> 24);
}

}  // namespace leveldb
