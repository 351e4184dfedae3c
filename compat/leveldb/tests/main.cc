// Runs the tests. LEVELDB_UNDER_TEST is the directory of the library that is to be tested: another one that was loaded
// would pass or fail for nothing. LEVELDB_TEST_FILTER takes those whose file or name has it.

#include <dlfcn.h>
#include <ftw.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "differences.h"
#include "harness.h"
#include "leveldb/c.h"

std::vector<Test>& Tests() {
  static std::vector<Test> tests;
  return tests;
}

Dir::Dir() {
  const char* parent = std::getenv("TMPDIR");
  path_ = std::string(parent != nullptr ? parent : "/tmp") + "/leveldb-test-XXXXXX";
  if (mkdtemp(&path_[0]) == nullptr) Fail(__FILE__, __LINE__, "no directory ", path_);
}

Dir::~Dir() {
  const auto remove_one = [](const char* path, const struct stat*, int, struct FTW*) { return std::remove(path); };
  nftw(path_.c_str(), remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static std::string LoadedFrom() {
  Dl_info info;
  return dladdr(reinterpret_cast<void*>(&leveldb_major_version), &info) != 0 ? info.dli_fname : "nowhere";
}

bool OnEsker() {
  static const bool esker = LoadedFrom().rfind("/usr/lib/", 0) != 0 && LoadedFrom().rfind("/lib/", 0) != 0;
  return esker;
}

bool IsSmall() { return std::getenv("LEVELDB_TEST_SMALL") != nullptr; }

// The library's directory, whatever links lead there.
static std::string Real(const std::string& path) {
  char* real = realpath(path.c_str(), nullptr);
  const std::string result = real != nullptr ? real : path;
  std::free(real);
  return result;
}

int main() {
  const char* wanted = std::getenv("LEVELDB_UNDER_TEST");
  const std::string loaded = LoadedFrom();
  const std::string directory = loaded.substr(0, loaded.rfind('/'));
  if (wanted == nullptr || Real(directory) != Real(wanted)) {
    std::fprintf(stderr, "error: libleveldb was loaded from %s, LEVELDB_UNDER_TEST is %s\n", LoadedFrom().c_str(),
                 wanted != nullptr ? wanted : "not set");
    return 2;
  }
  const char* given = std::getenv("LEVELDB_TEST_FILTER");
  const std::string filter = given != nullptr ? given : "";
  int ran = 0, failed = 0;
  for (const Test& test : Tests()) {
    const std::string name = std::string(test.file) + ":" + test.name;
    if (name.find(filter) == std::string::npos) continue;
    ++ran;
    try {
      test.run();
    } catch (const std::exception& error) {
      ++failed;
      std::fprintf(stderr, "FAILED %s\n  %s\n", test.name, error.what());
    }
  }
  std::printf("%d tests, %d failed, with %s\n", ran, failed, LoadedFrom().c_str());
  return failed != 0 || ran == 0;
}
