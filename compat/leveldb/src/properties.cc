// LevelDB's levels are Esker's runs: level 0 is the newest, and the last level has all that are older. A settled store
// has one run, its level 0.

#include "properties.h"

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdio>

#include "esker_status.h"

namespace leveldb {

namespace {

constexpr size_t kLevels = 7;
constexpr double kMegabyte = 1048576.0;

struct Level {
  uint64_t tables = 0;
  uint64_t bytes = 0;
  uint64_t entries = 0;
};

// A property of Esker's.
bool Ask(const esker_db* db, const char* name, std::string* value) {
  esker_string text = {};
  esker_error* error = nullptr;
  const esker_code code = esker_db_property(db, name, &text, &error);
  if (code != ESKER_OK) {
    esker_error_free(&error);
    return false;
  }
  value->assign(text.data, text.len);
  esker_string_free(&text);
  return true;
}

// The runs of the keyspace that a DB is, from lines "default 0: 3 tables, 4096 bytes, 17 entries".
bool Levels(const esker_db* db, std::array<Level, kLevels>* levels) {
  std::string text;
  if (!Ask(db, "esker.levels", &text)) return false;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    at = end + 1;
    uint64_t run = 0;
    Level read;
    const int found = std::sscanf(line.c_str(),
                                  "default %" SCNu64 ": %" SCNu64 " tables, %" SCNu64 " bytes, %" SCNu64 " entries",
                                  &run, &read.tables, &read.bytes, &read.entries);
    if (found != 4) continue;
    Level& level = (*levels)[std::min<uint64_t>(run, kLevels - 1)];
    level.tables += read.tables;
    level.bytes += read.bytes;
    level.entries += read.entries;
  }
  return true;
}

bool FilesAtLevel(const esker_db* db, const Slice& digits, std::string* value) {
  // Larger numbers than one digit are no level.
  if (digits.size() != 1 || digits[0] < '0' || digits[0] >= static_cast<char>('0' + kLevels)) return false;
  std::array<Level, kLevels> levels;
  if (!Levels(db, &levels)) return false;
  *value = std::to_string(levels[static_cast<size_t>(digits[0] - '0')].tables);
  return true;
}

bool Stats(const esker_db* db, std::string* value) {
  std::array<Level, kLevels> levels;
  std::string details;
  if (!Levels(db, &levels) || !Ask(db, "esker.stats", &details)) return false;
  *value = "Level  Files  Size(MB)     Entries\n----------------------------------\n";
  for (size_t i = 0; i < kLevels; ++i) {
    const Level& level = levels[i];
    if (level.tables == 0) continue;
    char line[96];
    std::snprintf(line, sizeof(line), "%5zu %6" PRIu64 " %9.1f %11" PRIu64 "\n", i, level.tables,
                  static_cast<double>(level.bytes) / kMegabyte, level.entries);
    value->append(line);
  }
  value->append(details).push_back('\n');
  return true;
}

bool Tables(const esker_db* db, std::string* value) {
  std::array<Level, kLevels> levels;
  if (!Levels(db, &levels)) return false;
  value->clear();
  for (size_t i = 0; i < kLevels; ++i) {
    const Level& level = levels[i];
    char lines[160];
    std::snprintf(lines, sizeof(lines), "--- level %zu ---\n", i);
    value->append(lines);
    if (level.tables == 0) continue;
    std::snprintf(lines, sizeof(lines), " %" PRIu64 " tables, %" PRIu64 " bytes, %" PRIu64 " entries\n", level.tables,
                  level.bytes, level.entries);
    value->append(lines);
  }
  return true;
}

}  // namespace

bool ReadProperty(const esker_db* db, const Slice& property, std::string* value) {
  value->clear();
  const Slice kLevel = "leveldb.num-files-at-level";
  if (property.starts_with(kLevel)) {
    Slice digits = property;
    digits.remove_prefix(kLevel.size());
    return FilesAtLevel(db, digits, value);
  }
  if (property == "leveldb.stats") return Stats(db, value);
  if (property == "leveldb.sstables") return Tables(db, value);
  if (property == "leveldb.approximate-memory-usage") return Ask(db, "esker.memory-used", value);
  return false;
}

}  // namespace leveldb
