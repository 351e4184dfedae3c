// The order of bytes, and the short keys between two keys that indexes of tables are made of.

#include "leveldb/comparator.h"

#include <algorithm>
#include <cstdint>

#include "leveldb/slice.h"

namespace leveldb {

Comparator::~Comparator() = default;

namespace {

constexpr unsigned char kLastByte = 0xff;

unsigned char ByteAt(const Slice& bytes, size_t at) { return static_cast<unsigned char>(bytes[at]); }

class Bytewise final : public Comparator {
 public:
  int Compare(const Slice& a, const Slice& b) const override { return a.compare(b); }

  const char* Name() const override { return "leveldb.BytewiseComparator"; }

  // Raises the first byte in which they differ, where there is a byte between the two, and ends there.
  void FindShortestSeparator(std::string* start, const Slice& limit) const override {
    const size_t common = std::min(start->size(), limit.size());
    size_t at = 0;
    while (at < common && (*start)[at] == limit[at]) ++at;
    // Where one is the other's beginning nothing is shorter.
    if (at == common) return;
    const int raised = ByteAt(*start, at) + 1;
    if (raised >= ByteAt(limit, at)) return;
    (*start)[at] = static_cast<char>(raised);
    start->resize(at + 1);
  }

  // Raises the first byte that can be, and ends there.
  void FindShortSuccessor(std::string* key) const override {
    for (size_t at = 0; at < key->size(); ++at) {
      const unsigned char byte = ByteAt(*key, at);
      if (byte == kLastByte) continue;
      (*key)[at] = static_cast<char>(byte + 1);
      key->resize(at + 1);
      return;
    }
  }
};

}  // namespace

// Never destroyed: stores may be open when the process ends.
const Comparator* BytewiseComparator() {
  static const Comparator* const bytewise = new Bytewise;
  return bytewise;
}

}  // namespace leveldb
