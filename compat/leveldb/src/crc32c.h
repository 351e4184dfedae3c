// The checksum of LevelDB's files: CRC-32C, and the form it is stored in.

#ifndef ESKER_COMPAT_LEVELDB_CRC32C_H_
#define ESKER_COMPAT_LEVELDB_CRC32C_H_

#include <cstdint>

#include "leveldb/slice.h"

namespace leveldb {
namespace crc32c {

// Of what `before` is the checksum of, followed by `bytes`.
uint32_t Extend(uint32_t before, const Slice& bytes);

inline uint32_t Of(const Slice& bytes) { return Extend(0, bytes); }

// Stored checksums are changed, as the checksum of bytes with their own checksum among them says little.
inline uint32_t Mask(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8u; }

}  // namespace crc32c
}  // namespace leveldb

#endif  // ESKER_COMPAT_LEVELDB_CRC32C_H_
