// The Bloom filter of LevelDB's tables. Stores of Esker have hash indexes and need none; files that TableBuilder
// writes have these.

#include "leveldb/filter_policy.h"

#include <algorithm>
#include <cstdint>

#include "hash.h"
#include "leveldb/slice.h"

namespace leveldb {

FilterPolicy::~FilterPolicy() = default;

namespace {

// Calls `probe(bit)` for each bit of `key` in a filter of `bits` bits, until it returns false.
template <typename Probe>
bool EachBit(const Slice& key, size_t bits, size_t probes, Probe probe) {
  constexpr uint32_t kSeed = 0xbc9f1d34;
  uint32_t hash = Hash(key, kSeed);
  const uint32_t step = (hash >> 17) | (hash << 15);
  for (size_t i = 0; i < probes; ++i, hash += step) {
    if (!probe(hash % bits)) return false;
  }
  return true;
}

class Bloom final : public FilterPolicy {
 public:
  explicit Bloom(int bits_per_key)
      : bits_per_key_(static_cast<size_t>(std::max(bits_per_key, 0))),
        // ln 2 bits a key for each probe: the least false answers.
        probes_(std::clamp<size_t>(static_cast<size_t>(static_cast<double>(bits_per_key_) * 0.69), 1, kMostProbes)) {}

  const char* Name() const override { return "leveldb.BuiltinBloomFilter2"; }

  // The bits, then how many probes there are: a byte.
  void CreateFilter(const Slice* keys, int n, std::string* dst) const override {
    // Very small filters would answer yes too often.
    const size_t wanted = std::max<size_t>(static_cast<size_t>(n) * bits_per_key_, 64);
    const size_t bytes = (wanted + 7) / 8;
    const size_t start = dst->size();
    dst->resize(start + bytes, '\0');
    dst->push_back(static_cast<char>(probes_));
    char* filter = &(*dst)[start];
    const auto set = [filter](size_t bit) {
      filter[bit / 8] = static_cast<char>(filter[bit / 8] | (1 << (bit % 8)));
      return true;
    };
    for (int i = 0; i < n; ++i) EachBit(keys[i], bytes * 8, probes_, set);
  }

  bool KeyMayMatch(const Slice& key, const Slice& filter) const override {
    if (filter.size() < 2) return false;
    const size_t bytes = filter.size() - 1;
    const size_t probes = static_cast<unsigned char>(filter[bytes]);
    // Kept for other encodings: nothing can be ruled out.
    if (probes > kMostProbes) return true;
    const auto is_set = [&filter](size_t bit) { return (filter[bit / 8] & (1 << (bit % 8))) != 0; };
    return EachBit(key, bytes * 8, probes, is_set);
  }

 private:
  static constexpr size_t kMostProbes = 30;

  const size_t bits_per_key_;
  const size_t probes_;
};

}  // namespace

const FilterPolicy* NewBloomFilterPolicy(int bits_per_key) { return new Bloom(bits_per_key); }

}  // namespace leveldb
