#include "posix_logger.h"

#include <sys/time.h>

#include <cerrno>
#include <cstdio>
#include <ctime>
#include <functional>
#include <memory>
#include <thread>

#include "posix_files.h"

namespace leveldb {

namespace {

class PosixLogger final : public Logger {
 public:
  explicit PosixLogger(std::FILE* file) : file_(file) {}
  ~PosixLogger() override { std::fclose(file_); }

  void Logv(const char* format, std::va_list arguments) override {
    std::string line = Head();
    std::va_list again;
    va_copy(again, arguments);
    const int len = std::vsnprintf(nullptr, 0, format, arguments);
    if (len > 0) {
      const size_t head = line.size();
      line.resize(head + static_cast<size_t>(len) + 1);
      std::vsnprintf(&line[head], static_cast<size_t>(len) + 1, format, again);
      line.pop_back();
    }
    va_end(again);
    if (line.back() != '\n') line.push_back('\n');
    // One call, so that lines of several threads do not mix.
    std::fwrite(line.data(), 1, line.size(), file_);
    std::fflush(file_);
  }

 private:
  static std::string Head() {
    timeval now;
    gettimeofday(&now, nullptr);
    std::tm parts;
    localtime_r(&now.tv_sec, &parts);
    char text[96];
    const unsigned long thread = std::hash<std::thread::id>{}(std::this_thread::get_id()) & 0xffffffff;
    std::snprintf(text, sizeof(text), "%04d/%02d/%02d-%02d:%02d:%02d.%06ld %lx ", parts.tm_year + 1900,
                  parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec,
                  static_cast<long>(now.tv_usec), thread);
    return text;
  }

  std::FILE* const file_;
};

}  // namespace

Status OpenLogger(const std::string& fname, Logger** result) {
  std::FILE* file = std::fopen(fname.c_str(), "ae");
  if (file == nullptr) {
    *result = nullptr;
    return PosixError(fname, errno);
  }
  *result = new PosixLogger(file);
  return Status::OK();
}

}  // namespace leveldb
