// esker.hpp: every class, what throws, and callbacks that throw.
#include <esker.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>

#define CHECK(condition)                                                      \
  do {                                                                        \
    if (!(condition)) {                                                       \
      std::cerr << __FILE__ << ":" << __LINE__ << ": " << #condition << "\n"; \
      std::exit(1);                                                           \
    }                                                                         \
  } while (0)

template <typename Call>
static esker_code code_of(Call call) {
  try {
    call();
  } catch (const esker::Error &e) {
    CHECK(std::strlen(e.what()) > 0);
    return e.code();
  }
  return ESKER_OK;
}

static esker::Options small() {
  esker::Options options;
  options.memory(1 << 20).segment_size(64 << 10);
  return options;
}

static const std::string LONG(100, 'x');

static void store(const std::string &dir) {
  esker::Db db(dir + "/store", small());
  db.put("ash", "Fraxinus");
  db.put("beech", LONG, ESKER_DURABILITY_SYNCED);
  db.put("", "");
  auto value = db.get("ash");
  CHECK(value && value->view() == "Fraxinus" && value->str() == "Fraxinus");
  CHECK(!db.get("elm") && db.get("")->view().empty() && db.contains("") && !db.contains("x"));

  // Values move, short ones and long ones.
  std::vector<esker::Value> kept;
  for (int i = 0; i < 20; i++) kept.push_back(std::move(*db.get(i % 2 ? "ash" : "beech")));
  std::rotate(kept.begin(), kept.begin() + 1, kept.end());
  CHECK(kept[0].view() == "Fraxinus" && kept[1].view() == LONG);
  esker::Value other = std::move(kept[0]);
  CHECK(!kept[0] && other && std::string_view(other) == "Fraxinus");
  kept[1] = std::move(other);
  CHECK(kept[1].view() == "Fraxinus");

  auto found = db.default_keyspace().multi_get({"ash", "none", "beech"});
  CHECK(found[0].view() == "Fraxinus" && !found[1] && found[2].view() == LONG);

  // Entries, in a for.
  std::string keys;
  for (auto [key, value] : db.cursor()) {
    keys += std::string(key) + ",";
    CHECK(key.empty() == value.empty());
  }
  CHECK(keys == ",ash,beech,");
  auto cursor = db.cursor();
  CHECK(!cursor.valid() && cursor.last() && cursor.key() == "beech" && cursor.value() == LONG);
  CHECK(cursor.prev() && cursor.entry().key == "ash" && cursor.next() && !cursor.next());
  CHECK(cursor.seek("b") && cursor.key() == "beech" && cursor.seek_for_prev("b"));
  CHECK(cursor.key() == "ash" && cursor.valid());
  esker::Cursor moved = std::move(cursor);
  CHECK(moved.next() && moved.key() == "beech");
  auto only = db.default_keyspace().cursor_keys_only();
  CHECK(only.last() && only.value().empty());

  // Batches, keyspaces, snapshots.
  esker::KeyspaceOptions reverse;
  reverse.order(ESKER_ORDER_REVERSE).compression(ESKER_COMPRESSION_NONE).blob_threshold(100);
  auto log = db.create_keyspace("log", reverse);
  esker::Batch batch;
  batch.put("oak", "Quercus");
  batch.put(log, "1", "one");
  batch.put(log, "2", "two");
  batch.erase("ash");
  batch.erase(log, "none");
  CHECK(batch.size() == 5 && batch.byte_len() > 0);
  auto before = db.snapshot();
  db.write(batch);
  batch.clear();
  CHECK(batch.empty() && !db.contains("ash"));
  auto view = db.at(before);
  CHECK(view.contains("ash") && !view.contains("oak") && before.sequence() == 3);
  CHECK(code_of([&] { view.put("a", "b"); }) == ESKER_READ_ONLY);
  CHECK((*log.cursor().begin()).key == "2");
  CHECK((db.keyspaces() == std::vector<std::string>{"default", "log"}));
  CHECK(db.keyspace("log").get("1")->view() == "one" && log.stats().id == 1);
  CHECK(db.keyspace("log").comparator() == log.comparator() && log.comparator().find("esker.") == 0);
  db.drop_keyspace("log");
  CHECK(code_of([&] { log.get("1"); }) == ESKER_KEYSPACE);
  CHECK(code_of([&] { db.keyspace("log"); }) == ESKER_KEYSPACE);

  // The rest of it.
  db.flush();
  db.sync();
  db.wait_for_compactions();
  db.resume();
  db.default_keyspace().compact_range();
  db.default_keyspace().compact_range("a", std::string_view());
  CHECK(db.default_keyspace().approximate_size() > 0);
  CHECK(db.default_keyspace().approximate_size("x") == 0);
  CHECK(db.property("esker.sequence").has_value() && !db.property("esker.none"));
  CHECK(db.stats().sequence >= 4 && db.stats().keyspaces == 1);
  db.erase("oak");
  db.checkpoint(dir + "/copy");
  auto held = db.get("beech");
  db.close();
  CHECK(held->view() == LONG);
  CHECK(code_of([&] { view.get("ash"); }) == ESKER_CLOSED);
  // What is held keeps the directory.
  CHECK(code_of([&] { esker::Db again(dir + "/store", small()); }) == ESKER_LOCKED);
}

static void whole_stores(const std::string &dir) {
  CHECK(code_of([&] { esker::Db again(dir + "/store", small().error_if_exists(true)); }) == ESKER_STORE_EXISTS);
  auto report = esker::Db::verify(dir + "/copy");
  CHECK(report && report.text.find("0 problems") != std::string::npos);
  CHECK(esker::Db::repair(dir + "/copy").rfind("sound", 0) == 0);
  int calls = 0;
  auto counts = [&](uint64_t, uint64_t) { return ++calls > 0; };
  auto stops = [](uint64_t, uint64_t) { return false; };
  CHECK(esker::Db::verify(dir + "/copy", esker::Options(), counts));
  CHECK(calls > 0);
  auto stopped = [&] { esker::Db::verify(dir + "/copy", esker::Options(), stops); };
  CHECK(code_of(stopped) == ESKER_ABORTED);
  try {
    esker::Db db(dir + "/copy", small());
    db.verify([](uint64_t, uint64_t) -> bool { throw 7; });
    CHECK(false);
  } catch (int thrown) {
    CHECK(thrown == 7);
  }
  CHECK(esker::Db(dir + "/copy", small()).verify());
  esker::Db::destroy(dir + "/copy");
  CHECK(code_of([&] { esker::Db::verify(dir + "/copy"); }) == ESKER_NOT_A_STORE);
}

static void callbacks(const std::string &dir) {
  bool throws = false;
  auto by_length = [&](std::string_view a, std::string_view b) {
    if (throws) throw std::runtime_error("no");
    return a.size() != b.size() ? (a.size() < b.size() ? -1 : 1) : a.compare(b);
  };
  auto options = small();
  options.comparator("test.length", by_length).keyspace_comparator("other", "test.length", by_length);
  CHECK(code_of([&] { options.comparator("\xff", by_length); }) == ESKER_INVALID_ARGUMENT);
  CHECK(code_of([&] { options.memory(3); }) == ESKER_INVALID_ARGUMENT);
  try {
    esker::Db below_a_file("/dev/null/store", small());
    CHECK(false);
  } catch (const esker::Error &e) {
    CHECK(e.code() == ESKER_IO && e.os_code() == ENOTDIR);
  }
  {
    esker::Db db(dir + "/length", options);
    db.create_keyspace("other", esker::KeyspaceOptions().comparator("test.length", by_length));
    db.put("bb", "1");
    db.put("c", "2");
    auto cursor = db.cursor();
    CHECK(cursor.first() && cursor.key() == "c");
    throws = true;
    CHECK(code_of([&] { db.get("c"); }) == ESKER_COMPARATOR);
    throws = false;
    CHECK(db.get("c"));
  }
  CHECK(code_of([&] { esker::Db db(dir + "/length"); }) == ESKER_COMPARATOR);
  esker::Db again(dir + "/length", options);
  CHECK(again.get("bb"));

  esker::Db db(dir + "/load", small());
  int n = 0;
  std::string key;
  auto next = [&](int stop) {
    return [&n, &key, stop]() -> std::optional<esker::Entry> {
      if (n == 1000) return {};
      if (n == stop) throw std::string("stopped");
      char text[16];
      std::snprintf(text, sizeof text, "%06d", n++);
      key = text;
      return esker::Entry{key, "value"};
    };
  };
  try {
    db.default_keyspace().bulk_load(next(500));
    CHECK(false);
  } catch (const std::string &thrown) {
    CHECK(thrown == "stopped");
  }
  CHECK(!db.contains("000000"));
  n = 0;
  CHECK(db.default_keyspace().bulk_load(next(-1)) == 1000);
  n = 5;
  CHECK(db.get("000999")->view() == "value");
  auto same = []() { return esker::Entry{"same", ""}; };
  CHECK(code_of([&] { db.default_keyspace().bulk_load(same); }) == ESKER_INVALID_ARGUMENT);
  esker::Db moved = std::move(db);
  CHECK(moved.contains("000001"));
}

// A name or path that has a NUL in it is refused: it was cut there, and something else dropped or removed.
static void names_with_a_nul_are_not_cut(const std::string &dir) {
  auto with_nul = [](std::string name) { return name + std::string("\0more", 5); };
  auto refused = [](auto call) { return code_of(call) == ESKER_INVALID_ARGUMENT; };
  auto by_bytes = [](std::string_view a, std::string_view b) { return a.compare(b); };
  const std::string path = dir + "/nul";
  {
    esker::Db db(path, small());
    db.create_keyspace("a").put("ash", "Fraxinus");
    CHECK(refused([&] { db.drop_keyspace(with_nul("a")); }));
    CHECK(refused([&] { db.keyspace(with_nul("a")); }));
    CHECK(refused([&] { db.create_keyspace(with_nul("b")); }));
    CHECK((db.keyspaces() == std::vector<std::string>{"default", "a"}));
    CHECK(db.keyspace("a").contains("ash"));
    CHECK(refused([&] { db.property(with_nul("esker.sequence")); }));
    CHECK(refused([&] { db.checkpoint(with_nul(dir + "/nul-copy")); }));
    esker::Db(dir + "/nul-copy", small().error_if_exists(true));
  }
  auto options = small();
  CHECK(refused([&] { options.comparator(with_nul("test.bytes"), by_bytes); }));
  CHECK(refused([&] { options.keyspace_comparator(with_nul("a"), "test.bytes", by_bytes); }));
  CHECK(refused([&] { options.keyspace_comparator("a", with_nul("test.bytes"), by_bytes); }));
  CHECK(refused([&] { esker::KeyspaceOptions().comparator(with_nul("test.bytes"), by_bytes); }));
  CHECK(refused([&] { esker::Db db(with_nul(path), small()); }));
  CHECK(refused([&] { esker::Db::verify(with_nul(path)); }));
  CHECK(refused([&] { esker::Db::repair(with_nul(path)); }));
  CHECK(refused([&] { esker::Db::destroy(with_nul(path)); }));
  // Nothing was set, and nothing is gone.
  CHECK(esker::Db(path, options.create_if_missing(false)).keyspace("a").contains("ash"));
}

int main(int argc, char **argv) {
  CHECK(argc == 2);
  store(argv[1]);
  whole_stores(argv[1]);
  callbacks(argv[1]);
  names_with_a_nul_are_not_cut(argv[1]);
  return 0;
}
