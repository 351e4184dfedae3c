// Status: an error's kind and text in one allocation, laid out as status.h says, for its inline functions read it.

#include "leveldb/status.h"

#include <cstdint>
#include <cstdio>
#include <cstring>

namespace leveldb {

namespace {

// Length of the text, then the kind.
constexpr size_t kHeader = sizeof(uint32_t) + 1;

}  // namespace

const char* Status::CopyState(const char* state) {
  uint32_t len = 0;
  memcpy(&len, state, sizeof(len));
  char* copy = new char[kHeader + len];
  memcpy(copy, state, kHeader + len);
  return copy;
}

Status::Status(Code code, const Slice& msg, const Slice& msg2) {
  const size_t joint = msg2.empty() ? 0 : 2;
  const uint32_t len = static_cast<uint32_t>(msg.size() + joint + msg2.size());
  char* state = new char[kHeader + len];
  memcpy(state, &len, sizeof(len));
  state[kHeader - 1] = static_cast<char>(code);
  char* text = state + kHeader;
  if (!msg.empty()) memcpy(text, msg.data(), msg.size());
  if (joint != 0) {
    memcpy(text + msg.size(), ": ", joint);
    memcpy(text + msg.size() + joint, msg2.data(), msg2.size());
  }
  state_ = state;
}

std::string Status::ToString() const {
  if (state_ == nullptr) return "OK";
  std::string text;
  switch (code()) {
    case kOk:
      text = "OK";
      break;
    case kNotFound:
      text = "NotFound: ";
      break;
    case kCorruption:
      text = "Corruption: ";
      break;
    case kNotSupported:
      text = "Not implemented: ";
      break;
    case kInvalidArgument:
      text = "Invalid argument: ";
      break;
    case kIOError:
      text = "IO error: ";
      break;
    default:
      text = "Unknown code(" + std::to_string(static_cast<int>(code())) + "): ";
  }
  uint32_t len = 0;
  memcpy(&len, state_, sizeof(len));
  return text.append(state_ + kHeader, len);
}

}  // namespace leveldb
