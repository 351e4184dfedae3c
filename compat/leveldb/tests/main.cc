// Runs the tests whose file or name has the argument in it, or all. LEVELDB_UNDER_TEST is the directory of the
// library that is to be tested: another one that was loaded would pass or fail for nothing.

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

int main(int argc, char** argv) {
  const char* wanted = std::getenv("LEVELDB_UNDER_TEST");
  if (wanted == nullptr || LoadedFrom().rfind(wanted, 0) != 0) {
    std::fprintf(stderr, "error: libleveldb was loaded from %s, LEVELDB_UNDER_TEST is %s\n", LoadedFrom().c_str(),
                 wanted != nullptr ? wanted : "not set");
    return 2;
  }
  int ran = 0, failed = 0;
  for (const Test& test : Tests()) {
    const std::string name = std::string(test.file) + ":" + test.name;
    if (argc > 1 && name.find(argv[1]) == std::string::npos) continue;
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
