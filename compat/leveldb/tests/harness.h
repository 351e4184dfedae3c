// A test is a function; a check that fails ends it. `Dir` is a directory for the test's files.

#ifndef ESKER_COMPAT_LEVELDB_TESTS_HARNESS_H_
#define ESKER_COMPAT_LEVELDB_TESTS_HARNESS_H_

#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

struct Failed : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Test {
  const char* file;
  const char* name;
  void (*run)();
};

std::vector<Test>& Tests();

struct Registered {
  Registered(const char* file, const char* name, void (*run)()) { Tests().push_back({file, name, run}); }
};

#define TEST(name)                                                  \
  static void name();                                               \
  static const Registered registered_##name(__FILE__, #name, name); \
  static void name()

template <typename... Parts>
[[noreturn]] void Fail(const char* file, int line, const Parts&... parts) {
  std::ostringstream text;
  text << file << ":" << line << ": ";
  (text << ... << parts);
  throw Failed(text.str());
}

#define CHECK(condition) \
  if (!(condition)) Fail(__FILE__, __LINE__, #condition)

#define CHECK_EQ(left, right)                                                                                     \
  do {                                                                                                            \
    const auto left_ = (left);                                                                                    \
    const auto right_ = (right);                                                                                  \
    if (!(left_ == right_)) Fail(__FILE__, __LINE__, #left, " is ", left_, ", and ", #right, " is ", right_); \
  } while (false)

#define CHECK_OK(call)                                                                      \
  do {                                                                                      \
    const auto status_ = (call);                                                            \
    if (!status_.ok()) Fail(__FILE__, __LINE__, #call, " gave ", status_.ToString()); \
  } while (false)

// Whether tests with counts are to take fewer, as each step is slow (LEVELDB_TEST_SMALL).
bool IsSmall();

// A directory of its own, removed with everything in it.
class Dir {
 public:
  Dir();
  ~Dir();
  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

#endif  // ESKER_COMPAT_LEVELDB_TESTS_HARNESS_H_
