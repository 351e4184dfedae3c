// Which objects of an interface are the library's own, among those that programs hand in. Not by dynamic_cast: classes of
// programs that are compiled without type information have none to ask.

#ifndef ESKER_COMPAT_LEVELDB_OWN_OBJECTS_H_
#define ESKER_COMPAT_LEVELDB_OWN_OBJECTS_H_

#include <mutex>
#include <set>

namespace leveldb {

// Base of a class `Own` that implements `Interface`: it lists its objects while they live.
template <typename Interface, typename Own>
class Listed {
 public:
  // `object`, if it is an Own; else null.
  static Own* Ours(const Interface* object) {
    const std::lock_guard<std::mutex> lock(Mutex());
    for (Own* own : Objects()) {
      if (static_cast<const Interface*>(own) == object) return own;
    }
    return nullptr;
  }

 protected:
  void Enlist(Own* own) {
    const std::lock_guard<std::mutex> lock(Mutex());
    Objects().insert(own);
  }
  void Delist(Own* own) {
    const std::lock_guard<std::mutex> lock(Mutex());
    Objects().erase(own);
  }

 private:
  // Never destroyed: objects may outlive the end of main.
  static std::mutex& Mutex() {
    static std::mutex* const mutex = new std::mutex;
    return *mutex;
  }
  static std::set<Own*>& Objects() {
    static std::set<Own*>* const objects = new std::set<Own*>;
    return *objects;
  }
};

}  // namespace leveldb

#endif  // ESKER_COMPAT_LEVELDB_OWN_OBJECTS_H_
