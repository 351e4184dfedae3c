// Esker for C++17: esker.h as classes that close what they hold, and exceptions in place of codes.
//
// A store, keyspace, cursor, batch, snapshot or value is held by one object, which is moved and not
// copied, and given back when that ends. Objects may end in any order. Keys, and values to be
// written, are std::string_view: any bytes. Calls throw esker::Error, which has the code and the
// message of esker.h; that a key is not there is no error.
//
//   esker::Db db("trees");
//   db.put("ash", "Fraxinus");
//   if (auto value = db.get("ash")) std::cout << value->view();
//   for (auto [key, value] : db.cursor()) std::cout << key << '\n';
//
// docs/C.md has more. An object that was moved from, or whose store was closed, may only be assigned to or destroyed.

#ifndef ESKER_HPP
#define ESKER_HPP

#include "esker.h"

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace esker {

/// Why a call failed.
class Error : public std::runtime_error {
 public:
  Error(esker_code code, const std::string &message, int os_code = 0)
      : std::runtime_error(message), code_(code), os_code_(os_code) {}
  esker_code code() const noexcept { return code_; }
  /// The operating system's number (errno), as esker_error_os_code; 0 when there is none.
  int os_code() const noexcept { return os_code_; }

 private:
  esker_code code_;
  int os_code_;
};

using Durability = esker_durability;
using Compression = esker_compression;
using Order = esker_order;

namespace detail {

/// Throws what a call gave, if it was an error.
inline esker_code check(esker_code code, esker_error *error) {
  if (code <= ESKER_NOT_FOUND) return code;
  std::unique_ptr<esker_error, void (*)(esker_error *)> held(
      error, [](esker_error *e) { esker_error_free(&e); });
  throw Error(code, error ? esker_error_message(error) : esker_code_name(code),
              esker_error_os_code(error));
}

/// Calls a function of esker.h, whose last argument is where the error goes.
template <typename Function, typename... Arguments>
esker_code call(Function function, Arguments... arguments) {
  esker_error *error = nullptr;
  esker_code code = function(arguments..., &error);
  return check(code, error);
}

/// One that only returns a code.
inline void plain(esker_code code, const char *what) {
  if (code > ESKER_NOT_FOUND) throw Error(code, what);
}

/// A name or path for a function of esker.h, for which it ends at the first NUL: one that has a NUL in
/// it is refused, and not cut.
inline const char *terminated(const char *what, const std::string &text) {
  if (text.find('\0') != std::string::npos)
    throw Error(ESKER_INVALID_ARGUMENT, std::string(what) + " has a NUL byte in it");
  return text.c_str();
}

/// Holds a handle, and closes it.
template <typename T, void (*Close)(T **)>
class Held {
 public:
  Held() = default;
  explicit Held(T *handle) : handle_(handle) {}
  Held(Held &&other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Held &operator=(Held &&other) noexcept {
    if (this != &other) {
      Close(&handle_);
      handle_ = std::exchange(other.handle_, nullptr);
    }
    return *this;
  }
  ~Held() { Close(&handle_); }
  T *get() const noexcept { return handle_; }
  T **out() noexcept { return &handle_; }
  void close() noexcept { Close(&handle_); }

 private:
  T *handle_ = nullptr;
};

inline void close_db(esker_db **db) { esker_db_close(db, nullptr); }

/// Takes a text over.
inline std::string taken(esker_string &text) {
  std::unique_ptr<esker_string, void (*)(esker_string *)> held(&text, esker_string_free);
  return std::string(text.data ? text.data : "", text.len);
}

inline std::string_view view(const uint8_t *data, std::size_t len) {
  return {reinterpret_cast<const char *>(data), len};
}

}  // namespace detail

/// An order of keys: below 0, 0 or above 0. One that throws could not compare.
using Compare = std::function<int(std::string_view, std::string_view)>;

namespace detail {

inline int compare(void *state, const uint8_t *a, std::size_t a_len, const uint8_t *b,
                   std::size_t b_len) noexcept {
  try {
    int answer = (*static_cast<Compare *>(state))(view(a, a_len), view(b, b_len));
    return (answer > 0) - (answer < 0);
  } catch (...) {
    return ESKER_COMPARE_FAILED;
  }
}

inline void destroy(void *state) noexcept { delete static_cast<Compare *>(state); }

/// Gives a comparator to a function that sets one, and keeps it when that fails.
template <typename Set>
void give(const std::string &name, Compare order, Set set) {
  const char *text = terminated("the name of a comparator", name);
  auto state = std::make_unique<Compare>(std::move(order));
  esker_comparator comparator{text, state.get(), compare, destroy};
  plain(set(&comparator), "comparator: its name is no text");
  state.release();
}

}  // namespace detail

/// How to open a store; each function is that of esker.h. One that sets what cannot be throws, and
/// changes nothing.
class Options {
 public:
  Options() : held_(esker_options_new()) {}
  Options &memory(uint64_t bytes) { return set(esker_options_set_memory, bytes, "memory"); }
  Options &durability(Durability d) { return set(esker_options_set_durability, d, "durability"); }
  Options &create_if_missing(bool yes) {
    return set(esker_options_set_create_if_missing, yes, "create_if_missing");
  }
  Options &error_if_exists(bool yes) {
    return set(esker_options_set_error_if_exists, yes, "error_if_exists");
  }
  Options &paranoid_checks(bool yes) {
    return set(esker_options_set_paranoid_checks, yes, "paranoid_checks");
  }
  Options &read_only(bool yes) { return set(esker_options_set_read_only, yes, "read_only"); }
  Options &flush_on_close(bool yes) {
    return set(esker_options_set_flush_on_close, yes, "flush_on_close");
  }
  Options &compression(Compression c) {
    return set(esker_options_set_compression, c, "compression");
  }
  Options &block_size(std::size_t bytes) {
    return set(esker_options_set_block_size, bytes, "block_size");
  }
  Options &segment_size(uint64_t bytes) {
    return set(esker_options_set_segment_size, bytes, "segment_size");
  }
  Options &blob_threshold(std::size_t bytes) {
    return set(esker_options_set_blob_threshold, bytes, "blob_threshold");
  }
  Options &order(Order o) { return set(esker_options_set_order, o, "order"); }
  Options &comparator(const std::string &name, Compare order) {
    detail::give(name, std::move(order), [&](const esker_comparator *c) {
      return esker_options_set_comparator(handle(), c);
    });
    return *this;
  }
  Options &keyspace_comparator(const std::string &keyspace, const std::string &name,
                               Compare order) {
    const char *of = detail::terminated("the name of a keyspace", keyspace);
    detail::give(name, std::move(order), [&](const esker_comparator *c) {
      return esker_options_set_keyspace_comparator(handle(), of, c);
    });
    return *this;
  }
  esker_options *handle() const noexcept { return held_.get(); }

 private:
  template <typename Function, typename T>
  Options &set(Function function, T value, const char *option) {
    detail::plain(function(handle(), value), option);
    return *this;
  }
  detail::Held<esker_options, esker_options_free> held_;
};

/// How to make a keyspace.
class KeyspaceOptions {
 public:
  KeyspaceOptions() : held_(esker_keyspace_options_new()) {}
  KeyspaceOptions &compression(Compression c) {
    detail::plain(esker_keyspace_options_set_compression(handle(), c), "compression");
    return *this;
  }
  KeyspaceOptions &blob_threshold(std::size_t bytes) {
    detail::plain(esker_keyspace_options_set_blob_threshold(handle(), bytes), "blob_threshold");
    return *this;
  }
  KeyspaceOptions &order(Order o) {
    detail::plain(esker_keyspace_options_set_order(handle(), o), "order");
    return *this;
  }
  KeyspaceOptions &comparator(const std::string &name, Compare order) {
    detail::give(name, std::move(order), [&](const esker_comparator *c) {
      return esker_keyspace_options_set_comparator(handle(), c);
    });
    return *this;
  }
  esker_keyspace_options *handle() const noexcept { return held_.get(); }

 private:
  detail::Held<esker_keyspace_options, esker_keyspace_options_free> held_;
};

/// A value that is not copied: it keeps the files it points into, until it ends. A view of it holds
/// until the value ends or is moved.
class Value {
 public:
  Value() noexcept : value_{} {}
  Value(Value &&other) noexcept { esker_value_move(&value_, &other.value_); }
  Value &operator=(Value &&other) noexcept {
    if (this != &other) {
      esker_value_release(&value_);
      esker_value_move(&value_, &other.value_);
    }
    return *this;
  }
  ~Value() { esker_value_release(&value_); }
  std::string_view view() const noexcept { return detail::view(value_.data, value_.len); }
  operator std::string_view() const noexcept { return view(); }
  std::string str() const { return std::string(view()); }
  /// Whether it holds one; a value of no bytes is one.
  explicit operator bool() const noexcept { return value_.data != nullptr; }
  /// For calls of esker.h that set one.
  esker_value *out() noexcept {
    esker_value_release(&value_);
    return &value_;
  }

 private:
  esker_value value_;
};

/// A key and its value, until the cursor moves.
struct Entry {
  std::string_view key, value;
};

/// A walk over the entries of a keyspace, as they were when it was made. Moves say whether it is on an
/// entry.
class Cursor {
 public:
  Cursor(const esker_keyspace *keyspace, bool keys_only) {
    detail::call(esker_cursor_open, keyspace, keys_only, held_.out());
  }
  bool first() { return moved(esker_cursor_first); }
  bool last() { return moved(esker_cursor_last); }
  bool next() { return moved(esker_cursor_next); }
  bool prev() { return moved(esker_cursor_prev); }
  /// To the first entry at or after a key.
  bool seek(std::string_view key) { return moved(esker_cursor_seek, key); }
  /// To the last entry at or before a key.
  bool seek_for_prev(std::string_view key) { return moved(esker_cursor_seek_for_prev, key); }
  bool valid() const noexcept { return entry_.key != nullptr; }
  std::string_view key() const noexcept { return detail::view(entry_.key, entry_.key_len); }
  std::string_view value() const noexcept { return detail::view(entry_.value, entry_.value_len); }
  Entry entry() const noexcept { return {key(), value()}; }
  esker_cursor *handle() const noexcept { return held_.get(); }

  /// All entries, from the first: `for (auto [key, value] : cursor)`.
  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = Entry;
    using difference_type = std::ptrdiff_t;
    using pointer = const Entry *;
    using reference = Entry;
    explicit Iterator(Cursor *cursor) : cursor_(cursor) {}
    Entry operator*() const { return cursor_->entry(); }
    Iterator &operator++() {
      if (!cursor_->next()) cursor_ = nullptr;
      return *this;
    }
    void operator++(int) { ++*this; }
    bool operator==(const Iterator &other) const { return cursor_ == other.cursor_; }
    bool operator!=(const Iterator &other) const { return cursor_ != other.cursor_; }

   private:
    Cursor *cursor_;
  };
  Iterator begin() { return Iterator(first() ? this : nullptr); }
  Iterator end() { return Iterator(nullptr); }

 private:
  template <typename Function>
  bool moved(Function function) {
    return detail::call(function, handle(), &entry_) == ESKER_OK;
  }
  template <typename Function>
  bool moved(Function function, std::string_view key) {
    const void *data = key.data();
    return detail::call(function, handle(), data, key.size(), &entry_) == ESKER_OK;
  }
  detail::Held<esker_cursor, esker_cursor_close> held_;
  esker_entry entry_{};
};

/// The whole store at one moment.
class Snapshot {
 public:
  explicit Snapshot(const esker_db *db) { detail::call(esker_snapshot_open, db, held_.out()); }
  uint64_t sequence() const noexcept { return esker_snapshot_sequence(held_.get()); }
  esker_snapshot *handle() const noexcept { return held_.get(); }

 private:
  detail::Held<esker_snapshot, esker_snapshot_close> held_;
};

/// A keyspace, as it is now or as a snapshot sees it.
class Keyspace {
 public:
  Keyspace(const esker_db *db, const char *name) {
    detail::call(esker_keyspace_open, db, name, held_.out());
  }
  explicit Keyspace(esker_keyspace *handle) : held_(handle) {}

  void put(std::string_view key, std::string_view value,
           Durability durability = ESKER_DURABILITY_DEFAULT) const {
    const void *k = key.data(), *v = value.data();
    detail::call(esker_put, handle(), k, key.size(), v, value.size(), durability);
  }
  /// Takes the value of a key away.
  void erase(std::string_view key, Durability durability = ESKER_DURABILITY_DEFAULT) const {
    const void *k = key.data();
    detail::call(esker_delete, handle(), k, key.size(), durability);
  }
  std::optional<Value> get(std::string_view key) const {
    std::optional<Value> value(std::in_place);
    const void *k = key.data();
    if (detail::call(esker_get, handle(), k, key.size(), value->out()) != ESKER_OK) value.reset();
    return value;
  }
  bool contains(std::string_view key) const {
    const void *k = key.data();
    return detail::call(esker_contains, handle(), k, key.size()) == ESKER_OK;
  }
  /// The values of several keys as of one moment; of a key without one, a Value that holds none.
  std::vector<Value> multi_get(const std::vector<std::string_view> &keys) const {
    std::vector<const void *> data;
    std::vector<std::size_t> lens;
    for (std::string_view key : keys) {
      data.push_back(key.data());
      lens.push_back(key.size());
    }
    struct Found {
      std::vector<esker_value> all;
      ~Found() {
        for (esker_value &value : all) esker_value_release(&value);
      }
    } found{std::vector<esker_value>(keys.size())};
    std::vector<Value> values(keys.size());
    detail::call(esker_multi_get, handle(), keys.size(), data.data(), lens.data(), found.all.data());
    for (std::size_t i = 0; i < keys.size(); i++) esker_value_move(values[i].out(), &found.all[i]);
    return values;
  }
  Cursor cursor() const { return Cursor(handle(), false); }
  Cursor cursor_keys_only() const { return Cursor(handle(), true); }
  /// The keyspace as a snapshot sees it, for reading.
  Keyspace at(const Snapshot &snapshot) const {
    Keyspace view(nullptr);
    detail::call(esker_keyspace_at, handle(), snapshot.handle(), view.held_.out());
    return view;
  }
  /// Loads ascending entries past the log, all at once. `next` gives one after the other, then nothing;
  /// what its views point to is read before it is called again. What it throws ends the load, and comes
  /// out of here.
  uint64_t bulk_load(const std::function<std::optional<Entry>()> &next) const {
    struct Source {
      const std::function<std::optional<Entry>()> &next;
      std::exception_ptr thrown;
    } source{next, nullptr};
    auto step = [](void *state, const void **key, std::size_t *key_len, const void **value,
                   std::size_t *value_len) noexcept -> int {
      auto *source = static_cast<Source *>(state);
      try {
        std::optional<Entry> entry = source->next();
        if (!entry) return 0;
        *key = entry->key.data();
        *key_len = entry->key.size();
        *value = entry->value.data();
        *value_len = entry->value.size();
        return 1;
      } catch (...) {
        source->thrown = std::current_exception();
        return -1;
      }
    };
    uint64_t loaded = 0;
    esker_error *error = nullptr;
    esker_code code = esker_bulk_load(handle(), step, &source, &loaded, &error);
    if (source.thrown) {
      esker_error_free(&error);
      std::rethrow_exception(source.thrown);
    }
    detail::check(code, error);
    return loaded;
  }
  /// Of the keys from `start` on and below `end`; nothing is no bound.
  void compact_range(std::optional<std::string_view> start = {},
                     std::optional<std::string_view> end = {}) const {
    Bound from(start), to(end);
    detail::call(esker_compact_range, handle(), from.data, from.len, to.data, to.len);
  }
  uint64_t approximate_size(std::optional<std::string_view> start = {},
                            std::optional<std::string_view> end = {}) const {
    Bound from(start), to(end);
    uint64_t bytes = 0;
    detail::call(esker_approximate_size, handle(), from.data, from.len, to.data, to.len, &bytes);
    return bytes;
  }
  esker_keyspace_stat stats() const {
    esker_keyspace_stat stats;
    detail::call(esker_keyspace_stats, handle(), &stats, sizeof stats);
    return stats;
  }
  /* The name of the order of its keys. */
  std::string comparator() const {
    esker_string text;
    detail::call(esker_keyspace_comparator, handle(), &text);
    return detail::taken(text);
  }
  esker_keyspace *handle() const noexcept { return held_.get(); }

 private:
  friend class Db;
  struct Bound {
    explicit Bound(std::optional<std::string_view> key)
        : data(key ? (key->data() ? key->data() : "") : nullptr), len(key ? key->size() : 0) {}
    const void *data;
    std::size_t len;
  };
  detail::Held<esker_keyspace, esker_keyspace_close> held_;
};

/// Writes that are applied together or not at all.
class Batch {
 public:
  Batch() : held_(esker_batch_new()) {}
  /// In the default keyspace of whatever store it is written to.
  void put(std::string_view key, std::string_view value) { put(nullptr, key, value); }
  void put(const Keyspace &keyspace, std::string_view key, std::string_view value) {
    put(keyspace.handle(), key, value);
  }
  void erase(std::string_view key) { erase(nullptr, key); }
  void erase(const Keyspace &keyspace, std::string_view key) { erase(keyspace.handle(), key); }
  void clear() noexcept { esker_batch_clear(handle()); }
  std::size_t size() const noexcept { return esker_batch_count(handle()); }
  bool empty() const noexcept { return size() == 0; }
  std::size_t byte_len() const noexcept { return esker_batch_byte_len(handle()); }
  esker_batch *handle() const noexcept { return held_.get(); }

 private:
  void put(const esker_keyspace *keyspace, std::string_view key, std::string_view value) {
    const void *k = key.data(), *v = value.data();
    detail::call(esker_batch_put, handle(), keyspace, k, key.size(), v, value.size());
  }
  void erase(const esker_keyspace *keyspace, std::string_view key) {
    const void *k = key.data();
    detail::call(esker_batch_delete, handle(), keyspace, k, key.size());
  }
  detail::Held<esker_batch, esker_batch_free> held_;
};

/// Told how far a call is, in bytes; false stops it. What it throws comes out of the call.
using Progress = std::function<bool(uint64_t done, uint64_t total)>;

/// What a verification found: sound when the problem is empty.
struct Report {
  std::string text, problem;
  explicit operator bool() const noexcept { return problem.empty(); }
};

/// An open store. put, get and the other calls of a keyspace work on the default one.
class Db {
 public:
  explicit Db(const std::string &path, const Options &options = Options())
      : db_(open(path, options)), default_(db_.get(), nullptr) {}

  const Keyspace &default_keyspace() const noexcept { return default_; }
  void put(std::string_view key, std::string_view value,
           Durability durability = ESKER_DURABILITY_DEFAULT) const {
    default_.put(key, value, durability);
  }
  void erase(std::string_view key, Durability durability = ESKER_DURABILITY_DEFAULT) const {
    default_.erase(key, durability);
  }
  std::optional<Value> get(std::string_view key) const { return default_.get(key); }
  bool contains(std::string_view key) const { return default_.contains(key); }
  Cursor cursor() const { return default_.cursor(); }
  Keyspace at(const Snapshot &snapshot) const { return default_.at(snapshot); }
  void write(const Batch &batch, Durability durability = ESKER_DURABILITY_DEFAULT) const {
    detail::call(esker_write, handle(), batch.handle(), durability);
  }
  Snapshot snapshot() const { return Snapshot(handle()); }

  Keyspace keyspace(const std::string &name) const {
    return Keyspace(handle(), detail::terminated("the name of a keyspace", name));
  }
  Keyspace create_keyspace(const std::string &name,
                           const KeyspaceOptions &options = KeyspaceOptions()) const {
    Keyspace made(nullptr);
    const char *text = detail::terminated("the name of a keyspace", name);
    detail::call(esker_keyspace_create, handle(), text, options.handle(), made.held_.out());
    return made;
  }
  void drop_keyspace(const std::string &name) const {
    detail::call(esker_keyspace_drop, handle(), detail::terminated("the name of a keyspace", name));
  }
  std::vector<std::string> keyspaces() const {
    struct Names {
      esker_string *all = nullptr;
      std::size_t count = 0;
      ~Names() { esker_strings_free(&all, count); }
    } names;
    detail::call(esker_db_keyspaces, handle(), &names.all, &names.count);
    std::vector<std::string> out;
    for (std::size_t i = 0; i < names.count; i++)
      out.emplace_back(names.all[i].data, names.all[i].len);
    return out;
  }

  void flush() const { detail::call(esker_db_flush, handle()); }
  void sync() const { detail::call(esker_db_sync, handle()); }
  void wait_for_compactions() const { detail::call(esker_db_wait_for_compactions, handle()); }
  void resume() const { detail::call(esker_db_resume, handle()); }
  void checkpoint(const std::string &dir) const {
    detail::call(esker_db_checkpoint, handle(), detail::terminated("a path", dir));
  }
  std::optional<std::string> property(const std::string &name) const {
    const char *asked = detail::terminated("the name of a property", name);
    esker_string text;
    if (detail::call(esker_db_property, handle(), asked, &text) != ESKER_OK) return {};
    return detail::taken(text);
  }
  esker_stats stats() const {
    esker_stats stats;
    detail::call(esker_db_stats, handle(), &stats, sizeof stats);
    return stats;
  }
  Report verify(const Progress &progress = {}) const {
    return verified(progress, [&](auto tell, auto state, auto text, auto error) {
      return esker_db_verify(handle(), tell, state, text, error);
    });
  }

  /// Closes the store for all its objects, and says what went wrong; the destructor does the same in
  /// silence.
  void close() {
    default_.held_.close();
    detail::call(esker_db_close, db_.out());
  }
  esker_db *handle() const noexcept { return db_.get(); }

  /// Of a store that is not open.
  static Report verify(const std::string &path, const Options &options = Options(),
                       const Progress &progress = {}) {
    const char *of = detail::terminated("a path", path);
    return verified(progress, [&](auto tell, auto state, auto text, auto error) {
      return esker_verify(of, options.handle(), tell, state, text, error);
    });
  }
  /// Gives the report as text.
  static std::string repair(const std::string &path, const Options &options = Options()) {
    esker_string text;
    detail::call(esker_repair, detail::terminated("a path", path), options.handle(), &text);
    return detail::taken(text);
  }
  static void destroy(const std::string &path) {
    detail::call(esker_destroy, detail::terminated("a path", path));
  }

 private:
  static esker_db *open(const std::string &path, const Options &options) {
    esker_db *db = nullptr;
    detail::call(esker_db_open, detail::terminated("a path", path), options.handle(), &db);
    return db;
  }
  template <typename Verify>
  static Report verified(const Progress &progress, Verify verify) {
    struct Told {
      const Progress &progress;
      std::exception_ptr thrown;
    } told{progress, nullptr};
    auto tell = [](void *state, uint64_t done, uint64_t total) noexcept -> int {
      auto *told = static_cast<Told *>(state);
      try {
        return told->progress(done, total) ? 0 : 1;
      } catch (...) {
        told->thrown = std::current_exception();
        return 1;
      }
    };
    esker_string text{};
    esker_error *error = nullptr;
    esker_progress teller = progress ? static_cast<esker_progress>(tell) : nullptr;
    esker_code code = verify(teller, static_cast<void *>(&told), &text, &error);
    Report report;
    report.text = detail::taken(text);
    if (told.thrown) {
      esker_error_free(&error);
      std::rethrow_exception(told.thrown);
    }
    // Problems come with a report; damage that ended the verification comes without one.
    if (code == ESKER_CORRUPTION && !report.text.empty()) {
      report.problem = esker_error_message(error);
      esker_error_free(&error);
    } else {
      detail::check(code, error);
    }
    return report;
  }
  detail::Held<esker_db, detail::close_db> db_;
  Keyspace default_;
};

}  // namespace esker

#endif
