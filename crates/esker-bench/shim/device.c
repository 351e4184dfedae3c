/* A slow device, for the process that this library is preloaded into: each call that waits for the device takes
 * ESKER_BENCH_SYNC_DELAY_US microseconds more, once it has succeeded. Threads that wait at the same time wait side
 * by side. What a program asks of the kernel without the C library is not seen here. */
#define _GNU_SOURCE
#undef _FORTIFY_SOURCE /* it would define some of these itself */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

/* Files whose writes wait, by number; larger numbers are not known to wait. */
#define FILES 65536
static atomic_char waits_at_write[FILES];
static atomic_ulong waits;

/* How many calls have waited since the process began. */
unsigned long esker_bench_waits(void) { return atomic_load(&waits); }

static long delay_us(void) {
  static atomic_long known = -1;
  long us = atomic_load(&known);
  if (us < 0) {
    const char *text = getenv("ESKER_BENCH_SYNC_DELAY_US");
    us = text ? atol(text) : 0;
    if (us < 0) us = 0;
    atomic_store(&known, us);
  }
  return us;
}

static void wait_more(void) {
  int before = errno;
  long us = delay_us();
  struct timespec left = {us / 1000000, us % 1000000 * 1000};
  atomic_fetch_add(&waits, 1);
  while (nanosleep(&left, &left) && errno == EINTR) {
  }
  errno = before;
}

/* The function of this name that was there without us. */
#define REAL(name) \
  static __typeof__(&name) real; \
  if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

#define SLOW(type, name, parameters, arguments, waiting) \
  type name parameters { \
    REAL(name); \
    type outcome = real arguments; \
    if (outcome >= 0 && (waiting)) wait_more(); \
    return outcome; \
  }

SLOW(int, fsync, (int fd), (fd), 1)
SLOW(int, fdatasync, (int fd), (fd), 1)
SLOW(int, syncfs, (int fd), (fd), 1)
SLOW(int, msync, (void *at, size_t size, int flags), (at, size, flags), flags &MS_SYNC)
/* To begin to write is no wait. */
SLOW(int, sync_file_range, (int fd, off64_t at, off64_t size, unsigned flags), (fd, at, size, flags),
     flags &(SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WAIT_AFTER))

void sync(void) {
  REAL(sync);
  real();
  wait_more();
}

/* Writes to files that were opened so wait by themselves. */
static int is_waiting(int fd) { return fd >= 0 && fd < FILES && atomic_load(&waits_at_write[fd]); }

SLOW(ssize_t, write, (int fd, const void *from, size_t size), (fd, from, size), is_waiting(fd))
SLOW(ssize_t, pwrite, (int fd, const void *from, size_t size, off_t at), (fd, from, size, at), is_waiting(fd))
SLOW(ssize_t, pwrite64, (int fd, const void *from, size_t size, off64_t at), (fd, from, size, at), is_waiting(fd))
SLOW(ssize_t, writev, (int fd, const struct iovec *from, int count), (fd, from, count), is_waiting(fd))
SLOW(ssize_t, pwritev, (int fd, const struct iovec *from, int count, off_t at), (fd, from, count, at), is_waiting(fd))
SLOW(ssize_t, pwritev64, (int fd, const struct iovec *from, int count, off64_t at), (fd, from, count, at),
     is_waiting(fd))

static int opened(int fd, int flags) {
  if (fd >= 0 && fd < FILES) atomic_store(&waits_at_write[fd], (flags & O_DSYNC) != 0);
  return fd;
}

/* O_SYNC contains O_DSYNC. */
#define MODE(flags) \
  mode_t mode = 0; \
  if ((flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE) { \
    va_list rest; \
    va_start(rest, flags); \
    mode = va_arg(rest, mode_t); \
    va_end(rest); \
  }

#define OPEN(name) \
  int name(const char *path, int flags, ...) { \
    REAL(name); \
    MODE(flags) \
    return opened(real(path, flags, mode), flags); \
  }
#define OPENAT(name) \
  int name(int dir, const char *path, int flags, ...) { \
    REAL(name); \
    MODE(flags) \
    return opened(real(dir, path, flags, mode), flags); \
  }
OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)

int close(int fd) {
  REAL(close);
  opened(fd, 0);
  return real(fd);
}
