#include "version_edit.h"

#include <set>
#include <utility>

#include "coding.h"
#include "internal_key.h"

namespace leveldb {

namespace {

enum Tag : uint32_t {
  kComparator = 1,
  kLogNumber = 2,
  kNextFile = 3,
  kLastSequence = 4,
  kCompactPointer = 5,
  kRemoveFile = 6,
  kAddFile = 7,
  kPrevLogNumber = 9,
};

constexpr uint32_t kLevels = 7;

std::string KeyInWords(const Slice& bytes) {
  InternalKey key;
  if (!ParseInternalKey(bytes, &key)) return "(bad)" + Escaped(bytes);
  return "'" + Escaped(key.user_key) + "' @ " + std::to_string(key.sequence) + " : " + (key.is_put ? "1" : "0");
}

// The parts of an edit as lines: each kind has its place, in whatever order the record has them.
struct Words {
  std::string comparator, log, previous_log, next_file, last_sequence;
  std::string pointers, added;
  std::set<std::pair<uint32_t, uint64_t>> removed;

  std::string Text() const {
    std::string text = "VersionEdit {" + comparator + log + previous_log + next_file + last_sequence + pointers;
    for (const auto& [level, number] : removed) {
      text += "\n  RemoveFile: " + std::to_string(level) + " " + std::to_string(number);
    }
    return text + added + "\n}\n";
  }
};

bool GetLevel(Slice* input, uint32_t* level) { return coding::GetVarint32(input, level) && *level < kLevels; }

// The key of an edit is never empty.
bool GetKey(Slice* input, Slice* key) { return coding::GetLengthPrefixed(input, key) && !key->empty(); }

// A number as a line.
bool GetNumber(Slice* input, const char* name, std::string* line) {
  uint64_t number = 0;
  if (!coding::GetVarint64(input, &number)) return false;
  *line = std::string("\n  ") + name + ": " + std::to_string(number);
  return true;
}

bool GetComparator(Slice* input, Words* words) {
  Slice name;
  if (!coding::GetLengthPrefixed(input, &name)) return false;
  words->comparator = "\n  Comparator: " + name.ToString();
  return true;
}

bool GetPointer(Slice* input, Words* words) {
  uint32_t level = 0;
  Slice key;
  if (!GetLevel(input, &level) || !GetKey(input, &key)) return false;
  words->pointers += "\n  CompactPointer: " + std::to_string(level) + " " + KeyInWords(key);
  return true;
}

bool GetRemoved(Slice* input, Words* words) {
  uint32_t level = 0;
  uint64_t number = 0;
  if (!GetLevel(input, &level) || !coding::GetVarint64(input, &number)) return false;
  words->removed.emplace(level, number);
  return true;
}

bool GetAdded(Slice* input, Words* words) {
  uint32_t level = 0;
  uint64_t number = 0, size = 0;
  Slice smallest, largest;
  if (!GetLevel(input, &level) || !coding::GetVarint64(input, &number) || !coding::GetVarint64(input, &size) ||
      !GetKey(input, &smallest) || !GetKey(input, &largest)) {
    return false;
  }
  words->added += "\n  AddFile: " + std::to_string(level) + " " + std::to_string(number) + " " +
                  std::to_string(size) + " " + KeyInWords(smallest) + " .. " + KeyInWords(largest);
  return true;
}

// What is wrong with the next part, or null.
const char* GetPart(Slice* input, Words* words) {
  uint32_t tag = 0;
  if (!coding::GetVarint32(input, &tag)) return "invalid tag";
  switch (tag) {
    case kComparator:
      return GetComparator(input, words) ? nullptr : "comparator name";
    case kLogNumber:
      return GetNumber(input, "LogNumber", &words->log) ? nullptr : "log number";
    case kPrevLogNumber:
      return GetNumber(input, "PrevLogNumber", &words->previous_log) ? nullptr : "previous log number";
    case kNextFile:
      return GetNumber(input, "NextFile", &words->next_file) ? nullptr : "next file number";
    case kLastSequence:
      return GetNumber(input, "LastSeq", &words->last_sequence) ? nullptr : "last sequence number";
    case kCompactPointer:
      return GetPointer(input, words) ? nullptr : "compaction pointer";
    case kRemoveFile:
      return GetRemoved(input, words) ? nullptr : "deleted file";
    case kAddFile:
      return GetAdded(input, words) ? nullptr : "new-file entry";
    default:
      return "unknown tag";
  }
}

}  // namespace

Status DescribeVersionEdit(const Slice& record, std::string* text) {
  Words words;
  for (Slice rest = record; !rest.empty();) {
    const char* wrong = GetPart(&rest, &words);
    if (wrong != nullptr) return Status::Corruption("VersionEdit", wrong);
  }
  *text = words.Text();
  return Status::OK();
}

}  // namespace leveldb
