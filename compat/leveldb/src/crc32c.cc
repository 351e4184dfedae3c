#include "crc32c.h"

#include <array>

namespace leveldb {
namespace crc32c {

namespace {

constexpr std::array<uint32_t, 256> MakeTable() {
  constexpr uint32_t kPolynomial = 0x82f63b78;
  std::array<uint32_t, 256> table = {};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? kPolynomial : 0);
    table[byte] = crc;
  }
  return table;
}

constexpr std::array<uint32_t, 256> kTable = MakeTable();

}  // namespace

uint32_t Extend(uint32_t before, const Slice& bytes) {
  uint32_t crc = ~before;
  for (size_t i = 0; i < bytes.size(); ++i) {
    crc = kTable[(crc ^ static_cast<unsigned char>(bytes[i])) & 0xff] ^ (crc >> 8);
  }
  return ~crc;
}

}  // namespace crc32c
}  // namespace leveldb
