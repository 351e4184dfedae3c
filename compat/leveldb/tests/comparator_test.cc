// Stores in an order of the program's own.

#include <atomic>
#include <chrono>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>

#include "differences.h"
#include "harness.h"
#include "leveldb/comparator.h"
#include "leveldb/db.h"
#include "leveldb/write_batch.h"
#include "stores.h"

using namespace leveldb;

namespace {

struct OtherName : Descending {
  const char* Name() const override { return "test.Other"; }
};

}  // namespace

TEST(keys_are_in_the_order_of_the_programs_comparator) {
  const Dir dir;
  const Descending descending;
  Options options = Create();
  options.comparator = &descending;
  std::string expected;
  for (int i = 1999; i >= 0; --i) expected += "(" + std::to_string(i) + "=v)";
  {
    const auto db = Open(dir / "db", options);
    for (int i = 0; i < 2000; ++i) Put(db.get(), std::to_string(i * 7 % 2000), "v");
    CHECK(Contents(db.get()) == expected);
    const Slice from = "1500", to = "500";
    db->CompactRange(&from, &to);
    CHECK(Contents(db.get()) == expected);
    // The same number is the same key.
    CHECK_EQ(Get(db.get(), "0017"), "v");
    const std::unique_ptr<Iterator> iterator(db->NewIterator(ReadOptions()));
    iterator->Seek("5000");
    CHECK_EQ(iterator->key().ToString(), "1999");
  }
  const auto db = Open(dir / "db", options);
  CHECK(Contents(db.get()) == expected);
}

TEST(another_comparator_is_refused) {
  const Dir dir;
  const Descending descending;
  const OtherName other;
  Options options = Create();
  CHECK_OK(TryOpen(dir / "bytes", options));
  options.comparator = &descending;
  CHECK_OK(TryOpen(dir / "numbers", options));
  CHECK(TryOpen(dir / "bytes", options).IsInvalidArgument());
  options.comparator = &other;
  const Status mismatch = TryOpen(dir / "numbers", options);
  CHECK(mismatch.IsInvalidArgument());
  CHECK(mismatch.ToString().find("test.Descending") != std::string::npos);
  CHECK(mismatch.ToString().find("test.Other") != std::string::npos);
  CHECK(TryOpen(dir / "numbers", Options()).IsInvalidArgument());
  options.comparator = &descending;
  CHECK_OK(TryOpen(dir / "numbers", options));
}

namespace {

// A name that is no text: a binding's, say, that forgets the zero at its end.
struct Named : Descending {
  explicit Named(std::string bytes) : name(std::move(bytes)) {}
  const char* Name() const override { return name.c_str(); }
  std::string name;
};

// As of an interpreter: compares only where its lock is held.
struct Interpreted : Descending {
  int Compare(const Slice& a, const Slice& b) const override {
    const std::lock_guard<std::recursive_mutex> running(lock);
    return Descending::Compare(a, b);
  }
  mutable std::recursive_mutex lock;
};

}  // namespace

TEST(a_comparator_may_have_any_name) {
  const Dir dir;
  const Named odd("odd\xff\x80\n"), other("odd\xff\x81\n");
  Options options = Create();
  options.comparator = &odd;
  Put(Open(dir / "db", options).get(), "1", "one");
  options.comparator = &other;
  CHECK(TryOpen(dir / "db", options).IsInvalidArgument());
  options.comparator = &odd;
  CHECK_EQ(Get(Open(dir / "db", options).get(), "1"), "one");
}

TEST(names_of_comparators_have_limits) {
  for (const size_t length : {0, 1, 1024, 1025}) {
    const Dir dir;
    const Named named(std::string(length, 'x'));
    Options options = Create();
    options.comparator = &named;
    const bool refused = HasComparatorNameLimits() && (length == 0 || length > 1024);
    CHECK_EQ(TryOpen(dir / "db", options).IsInvalidArgument(), refused);
  }
}

TEST(names_of_comparators_do_not_begin_as_those_of_esker) {
  const Dir dir;
  const Named named("esker.mine");
  Options options = Create();
  options.comparator = &named;
  const Status status = TryOpen(dir / "db", options);
  CHECK_EQ(status.IsInvalidArgument(), HasComparatorNameLimits());
  if (!status.ok()) CHECK(status.ToString().find("begin with \"esker.\"") != std::string::npos);
}

TEST(names_of_comparators_that_are_written_alike_stay_different) {
  const Dir dir;
  const Named byte("odd\xff"), text("odd\\xff"), longer(std::string(1500, 'x'));
  Options options = Create();
  options.comparator = &byte;
  CHECK_OK(TryOpen(dir / "db", options));
  options.comparator = &text;
  CHECK(TryOpen(dir / "db", options).IsInvalidArgument());
  if (!OnEsker()) return;
  options.comparator = &longer;
  CHECK(TryOpen(dir / "long", options).IsInvalidArgument());
}

TEST(a_store_is_closed_under_the_lock_that_its_comparator_takes) {
  const Dir dir;
  const Interpreted interpreted;
  Options options = Create();
  options.comparator = &interpreted;
  const std::lock_guard<std::recursive_mutex> running(interpreted.lock);
  for (int round = 0; round < 3; ++round) {
    const auto db = Open(dir / "db", options);
    for (int i = 0; i < 100; ++i) Put(db.get(), std::to_string(round * 100 + i), "v");
    // Long enough for a store that tidies up to begin.
    if (round == 0) std::this_thread::sleep_for(std::chrono::milliseconds(300));
  }
  const auto db = Open(dir / "db", options);
  CHECK_EQ(Get(db.get(), "217"), "v");
  CHECK_EQ(Get(db.get(), "17"), "v");
}

namespace {

struct Throwing : Descending {
  int Compare(const Slice& a, const Slice& b) const override {
    if (throws) throw std::runtime_error("no order");
    return Descending::Compare(a, b);
  }
  std::atomic<bool> throws{false};
};

}  // namespace

TEST(a_comparator_that_throws_fails_the_call_alone) {
  if (!SurvivesThrowingComparator()) return;
  const Dir dir;
  Throwing comparator;
  Options options = Create();
  options.comparator = &comparator;
  const auto db = Open(dir / "db", options);
  Put(db.get(), "1", "one");
  Put(db.get(), "2", "two");
  comparator.throws = true;
  CHECK(!db->Put(WriteOptions(), "3", "three").ok());
  WriteBatch batch;
  batch.Put("4", "four");
  CHECK(!db->Write(WriteOptions(), &batch).ok());
  std::string value;
  const Status status = db->Get(ReadOptions(), "1", &value);
  CHECK(!status.ok() && !status.IsNotFound());
  const std::unique_ptr<Iterator> iterator(db->NewIterator(ReadOptions()));
  iterator->Seek("1");
  CHECK(!iterator->Valid() && iterator->status().ToString().find("comparator") != std::string::npos);
  comparator.throws = false;
  CHECK_EQ(Contents(db.get()), "(2=two)(1=one)");
  Put(db.get(), "3", "three");
  CHECK_EQ(Get(db.get(), "3"), "three");
}
