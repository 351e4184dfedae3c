// Numbers as LevelDB's formats store them: fixed ones little-endian, varints with seven bits a byte, lowest first.

#ifndef ESKER_COMPAT_LEVELDB_CODING_H_
#define ESKER_COMPAT_LEVELDB_CODING_H_

#include <cstdint>
#include <cstring>
#include <string>

#include "leveldb/slice.h"

namespace leveldb {
namespace coding {

// The machines this library is built for store numbers as the formats do.
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "Esker's files need a little-endian machine");

template <typename Number>
inline Number DecodeFixed(const char* from) {
  Number number;
  memcpy(&number, from, sizeof(number));
  return number;
}

inline uint32_t DecodeFixed32(const char* from) { return DecodeFixed<uint32_t>(from); }
inline uint64_t DecodeFixed64(const char* from) { return DecodeFixed<uint64_t>(from); }

template <typename Number>
inline void EncodeFixed(char* to, Number number) {
  memcpy(to, &number, sizeof(number));
}

template <typename Number>
inline void PutFixed(std::string* to, Number number) {
  char bytes[sizeof(number)];
  EncodeFixed(bytes, number);
  to->append(bytes, sizeof(bytes));
}

inline void PutFixed32(std::string* to, uint32_t number) { PutFixed(to, number); }
inline void PutFixed64(std::string* to, uint64_t number) { PutFixed(to, number); }

inline void PutVarint64(std::string* to, uint64_t number) {
  char bytes[10];
  size_t len = 0;
  for (; number >= 0x80; number >>= 7) bytes[len++] = static_cast<char>(number | 0x80);
  bytes[len++] = static_cast<char>(number);
  to->append(bytes, len);
}

inline void PutVarint32(std::string* to, uint32_t number) { PutVarint64(to, number); }

inline void PutLengthPrefixed(std::string* to, const Slice& bytes) {
  PutVarint32(to, static_cast<uint32_t>(bytes.size()));
  to->append(bytes.data(), bytes.size());
}

// Takes a number of at most `bits` bits off the front of `input`. False when there is no whole one, or it is larger.
inline bool GetVarint(Slice* input, unsigned bits, uint64_t* number) {
  uint64_t result = 0;
  unsigned shift = 0;
  for (size_t at = 0; at < input->size() && shift < bits; ++at, shift += 7) {
    const uint64_t byte = static_cast<unsigned char>((*input)[at]);
    const uint64_t digits = byte & 0x7f;
    if (bits - shift < 7 && (digits >> (bits - shift)) != 0) return false;
    result |= digits << shift;
    if (byte < 0x80) {
      input->remove_prefix(at + 1);
      *number = result;
      return true;
    }
  }
  return false;
}

inline bool GetVarint32(Slice* input, uint32_t* number) {
  uint64_t wide = 0;
  if (!GetVarint(input, 32, &wide)) return false;
  *number = static_cast<uint32_t>(wide);
  return true;
}

inline bool GetVarint64(Slice* input, uint64_t* number) { return GetVarint(input, 64, number); }

inline bool GetLengthPrefixed(Slice* input, Slice* bytes) {
  uint32_t len = 0;
  if (!GetVarint32(input, &len) || input->size() < len) return false;
  *bytes = Slice(input->data(), len);
  input->remove_prefix(len);
  return true;
}

}  // namespace coding
}  // namespace leveldb

#endif  // ESKER_COMPAT_LEVELDB_CODING_H_
