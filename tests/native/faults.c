/* Makes the n-th system call of a process fail that concerns certain files: preloaded by tests.
 *
 *   FAULT_PATHS   substrings of paths, separated by colons: whose files count
 *   FAULT_LOG     a line for each call that counts: its number, its name, its path
 *   FAULT_AT      the number of the call that fails, from 1 on; 0: none
 *   FAULT_ERRNO   with which errno
 *   FAULT_FROM    1: every later call that changes something fails as well, as on a full disk
 *   FAULT_HANG    1: the call does not fail, it never ends
 *   FAULT_CLOCK   substring of a library's path: what that library sees of time is ours. It passes as
 *                 on any clock, and jumps where that library sleeps, and where a call takes long
 *
 * Whoever is in the same process says so with `fault_arm`, as often as it likes, instead of FAULT_AT.
 * Only calls through the C library are seen.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000LL
#define SLOW_NS SECOND
#define HANG_NS (30 * SECOND)
/* While a call hangs, each millisecond is so many. */
#define HASTE 200
/* What sleeps for so long is a pause; whoever waits for a lock looks more often. */
#define PAUSE_NS 40000000

enum kind { FAILS, SHORT, WRONG, SLOW, HANGS, SHRINKS, KILLS, STEPS };

static char *paths;
static int at, error_number, from_then_on, hang, log_descriptor = -1;
static int count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char only[32], target[4096];
static enum kind kind;
static int pauses, pause_at, met;

static long (*system_call)(long, ...);
static int (*read_clock)(clockid_t, struct timespec *);
static char *library;
static uintptr_t library_begin, library_end;
/* How far the wall clock is ahead of that of the system, for everybody, and by how much it steps [ns]. */
static _Atomic long long wall_ahead, wall_step;
/* How far the clock of that library is ahead [ns]. */
static _Atomic long long ahead;

/* What the environment says; whoever is forked and told something else begins once more. */
__attribute__((constructor)) void fault_begin(void) {
  const char *text;
  system_call = dlsym(RTLD_NEXT, "syscall");
  read_clock = dlsym(RTLD_NEXT, "clock_gettime");
  library = getenv("FAULT_CLOCK");
  paths = getenv("FAULT_PATHS");
  at = (text = getenv("FAULT_AT")) ? atoi(text) : 0;
  error_number = (text = getenv("FAULT_ERRNO")) ? atoi(text) : EIO;
  from_then_on = (text = getenv("FAULT_FROM")) ? atoi(text) : 0;
  hang = (text = getenv("FAULT_HANG")) ? atoi(text) : 0;
  if ((text = getenv("FAULT_LOG")))
    log_descriptor = system_call(SYS_openat, AT_FDCWD, text, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
}

static int counts(const char *path) {
  if (!paths || !path) return 0;
  char copy[4096], *rest = copy, *part;
  snprintf(copy, sizeof copy, "%s", paths);
  while ((part = strsep(&rest, ":")))
    if (*part && strstr(path, part)) return 1;
  return 0;
}

static void told(int number, const char *name, const char *path) {
  char line[4200];
  int length = snprintf(line, sizeof line, "%d %s %s\n", number, name, path);
  if (log_descriptor >= 0) system_call(SYS_write, log_descriptor, line, length);
}

/* From now on: the `at_call`-th call whose name begins with `calls`, counted from here or, where `at_pause` is
 * not 0, from the end of that pause on. `path` is what shrinks. */
void fault_arm(const char *calls, int at_call, int at_pause, int what, int error, int lasting, const char *path) {
  snprintf(only, sizeof only, "%s", calls);
  snprintf(target, sizeof target, "%s", path);
  kind = what, error_number = error, from_then_on = lasting;
  at = at_call, pause_at = at_pause, count = pauses = met = 0;
}

/* By how much the wall clock steps where that is what happens. */
void fault_step(long long step) { wall_ahead = 0, wall_step = step; }

/* How often it was met since. */
int fault_met(void) { return met; }

static void shrink(void) {
  struct stat now;
  if (!lstat(target, &now)) system_call(SYS_truncate, target, now.st_size / 2);
}

static void take_long(void) {
  if (kind == SLOW) ahead += SLOW_NS;
  else
    for (long long end = ahead + HANG_NS; ahead < end; ahead += HASTE * 1000000LL) {
      struct timespec millisecond = {0, 1000000};
      system_call(SYS_nanosleep, &millisecond, NULL);
    }
}

/* What this call meets: 0 for nothing, 1 + `kind` for what it must see to itself. */
static int meets(const char *name, const char *path, int changes) {
  if (!counts(path)) return 0;
  pthread_mutex_lock(&lock);
  int counted = !strncmp(name, only, strlen(only)) && pauses >= pause_at;
  int number = counted ? ++count : count;
  pthread_mutex_unlock(&lock);
  told(number, name, path);
  if (!at || !counted || number < at || (number > at && !(from_then_on && changes))) return 0;
  met++;
  if (hang)
    for (;;) pause();
  if (kind == SLOW || kind == HANGS) return take_long(), 0;
  if (kind == SHRINKS) return shrink(), 0;
  if (kind == KILLS) raise(SIGKILL);
  if (kind == STEPS) return wall_ahead += wall_step, wall_step = -wall_step, 0;
  errno = error_number;
  return 1 + kind;
}

static int fails(const char *name, const char *path, int changes) {
  return meets(name, path, changes) == 1 + FAILS;
}

/* The path of an open descriptor, whoever opened it and however. */
static const char *name_of(int descriptor) {
  static __thread char found[4096];
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
  long length = system_call(SYS_readlink, link, found, sizeof found - 1);
  if (length <= 0) return NULL;
  found[length] = 0;
  return found;
}

/* What a path leads to, where it is the name of a descriptor. */
static const char *meant(const char *path) {
  int descriptor;
  return path && sscanf(path, "/proc/self/fd/%d", &descriptor) == 1 ? name_of(descriptor) : path;
}

#define REAL(type, name, ...) static type (*real)(__VA_ARGS__); if (!real) real = dlsym(RTLD_NEXT, #name)

#define OPEN(name)                                                                                \
  int name(const char *path, int flags, ...) {                                                    \
    REAL(int, name, const char *, int, ...);                                                      \
    va_list more; va_start(more, flags); int mode = va_arg(more, int); va_end(more);              \
    if (fails(#name, meant(path), (flags & O_ACCMODE) != O_RDONLY)) return -1;                    \
    return real(path, flags, mode);                                                               \
  }
OPEN(open) OPEN(open64)

#define OPENAT(name)                                                                              \
  int name(int folder, const char *path, int flags, ...) {                                        \
    REAL(int, name, int, const char *, int, ...);                                                 \
    va_list more; va_start(more, flags); int mode = va_arg(more, int); va_end(more);              \
    if (fails(#name, meant(path), (flags & O_ACCMODE) != O_RDONLY)) return -1;                    \
    return real(folder, path, flags, mode);                                                       \
  }
OPENAT(openat) OPENAT(openat64)

#define ON_PATH(name, parameters, arguments, changes)                                             \
  int name parameters {                                                                           \
    static int(*real) parameters;                                                                 \
    if (!real) real = dlsym(RTLD_NEXT, #name);                                                    \
    if (fails(#name, meant(path), changes)) return -1;                                                  \
    return real arguments;                                                                        \
  }
ON_PATH(rename, (const char *path, const char *to), (path, to), 1)
ON_PATH(renameat, (int a, const char *path, int b, const char *to), (a, path, b, to), 1)
ON_PATH(mkdir, (const char *path, mode_t mode), (path, mode), 1)
ON_PATH(mkdirat, (int folder, const char *path, mode_t mode), (folder, path, mode), 1)
ON_PATH(unlink, (const char *path), (path), 1)
ON_PATH(unlinkat, (int folder, const char *path, int flags), (folder, path, flags), 1)
ON_PATH(rmdir, (const char *path), (path), 1)
ON_PATH(stat, (const char *path, struct stat *to), (path, to), 0)
ON_PATH(lstat, (const char *path, struct stat *to), (path, to), 0)
ON_PATH(statx, (int folder, const char *path, int flags, unsigned mask, struct statx *to),
        (folder, path, flags, mask, to), 0)
ON_PATH(setxattr, (const char *path, const char *key, const void *value, size_t size, int flags),
        (path, key, value, size, flags), 1)

#define ON_FILE(type, name, parameters, arguments, changes)                                       \
  type name parameters {                                                                          \
    static type(*real) parameters;                                                                \
    if (!real) real = dlsym(RTLD_NEXT, #name);                                                    \
    if (fails(#name, name_of(descriptor), changes)) return -1;                                    \
    return real arguments;                                                                        \
  }
ON_FILE(int, fsync, (int descriptor), (descriptor), 1)
ON_FILE(int, fdatasync, (int descriptor), (descriptor), 1)
ON_FILE(int, flock, (int descriptor, int how), (descriptor, how), 0)
ON_FILE(int, fstat, (int descriptor, struct stat *to), (descriptor, to), 0)
ON_FILE(int, ftruncate, (int descriptor, off_t size), (descriptor, size), 1)
ON_FILE(int, ftruncate64, (int descriptor, off_t size), (descriptor, size), 1)
ON_FILE(int, fsetxattr, (int descriptor, const char *key, const void *value, size_t size, int flags),
        (descriptor, key, value, size, flags), 1)
ON_FILE(ssize_t, read, (int descriptor, void *to, size_t size), (descriptor, to, size), 0)
ON_FILE(int, fallocate, (int descriptor, int how, off_t offset, off_t size), (descriptor, how, offset, size), 1)
ON_FILE(int, fallocate64, (int descriptor, int how, off_t offset, off_t size), (descriptor, how, offset, size), 1)

static size_t shortened(int what, size_t size) { return what == 1 + SHORT ? size / 2 : size; }

ssize_t write(int descriptor, const void *from, size_t size) {
  REAL(ssize_t, write, int, const void *, size_t);
  int what = meets("write", name_of(descriptor), 1);
  if (what == 1 + FAILS) return -1;
  return real(descriptor, from, shortened(what, size));
}

#define READ(name)                                                                                \
  ssize_t name(int descriptor, void *to, size_t size, off_t offset) {                             \
    static ssize_t (*real)(int, void *, size_t, off_t);                                           \
    if (!real) real = dlsym(RTLD_NEXT, #name);                                                    \
    int what = meets(#name, name_of(descriptor), 0);                                              \
    if (what == 1 + FAILS) return -1;                                                             \
    ssize_t moved = real(descriptor, to, shortened(what, size), offset);                          \
    if (what == 1 + WRONG && moved > 0) memset(to, 0xA5, moved);                                  \
    return moved;                                                                                 \
  }
READ(pread) READ(pread64)

#define WRITE(name)                                                                               \
  ssize_t name(int descriptor, const void *from, size_t size, off_t offset) {                     \
    static ssize_t (*real)(int, const void *, size_t, off_t);                                     \
    if (!real) real = dlsym(RTLD_NEXT, #name);                                                    \
    int what = meets(#name, name_of(descriptor), 1);                                              \
    if (what == 1 + FAILS) return -1;                                                             \
    if (what != 1 + WRONG) return real(descriptor, from, shortened(what, size), offset);          \
    void *other = malloc(size);                                                                   \
    ssize_t moved = real(descriptor, memset(other, 0xA5, size), size, offset);                    \
    free(other);                                                                                  \
    return moved;                                                                                 \
  }
WRITE(pwrite) WRITE(pwrite64)

/* A write that is durable when it is over has a name of its own. */
ssize_t pwritev2(int descriptor, const struct iovec *from, int pieces, off_t offset, int flags) {
  static ssize_t (*real)(int, const struct iovec *, int, off_t, int);
  if (!real) real = dlsym(RTLD_NEXT, "pwritev2");
  if (fails(flags & RWF_DSYNC ? "pwritev2:dsync" : "pwritev2", name_of(descriptor), 1)) return -1;
  return real(descriptor, from, pieces, offset, flags);
}

/* ---- time, as one library sees it ---- */

static int look_for(struct dl_phdr_info *info, size_t size, void *unused) {
  if (!info->dlpi_name || !strstr(info->dlpi_name, library)) return 0;
  for (int at = 0; at < info->dlpi_phnum; at++)
    if (info->dlpi_phdr[at].p_type == PT_LOAD && info->dlpi_phdr[at].p_flags & PF_X) {
      library_begin = info->dlpi_addr + info->dlpi_phdr[at].p_vaddr;
      library_end = library_begin + info->dlpi_phdr[at].p_memsz;
    }
  return 1;
}

static int is_of_library(const void *caller) {
  if (!library) return 0;
  if (!library_end) dl_iterate_phdr(look_for, NULL);
  return (uintptr_t)caller >= library_begin && (uintptr_t)caller < library_end;
}

static long long nanoseconds(const struct timespec *time) { return time->tv_sec * SECOND + time->tv_nsec; }

static long long clock_of_library(void) {
  struct timespec now;
  read_clock(CLOCK_MONOTONIC, &now);
  return nanoseconds(&now) + ahead;
}

/* How many calls counted since. */
int fault_calls(void) { return count; }

/* What it sees of the clock now [ns]. */
long long fault_clock(void) { return clock_of_library(); }

int clock_gettime(clockid_t which, struct timespec *to) {
  if (!read_clock) read_clock = dlsym(RTLD_NEXT, "clock_gettime");
  if (which == CLOCK_REALTIME && wall_ahead) {
    int status = read_clock(which, to);
    long long now = nanoseconds(to) + wall_ahead;
    *to = (struct timespec){now / SECOND, now % SECOND};
    return status;
  }
  if (which != CLOCK_MONOTONIC || !is_of_library(__builtin_return_address(0))) return read_clock(which, to);
  long long now = clock_of_library();
  *to = (struct timespec){now / SECOND, now % SECOND};
  return 0;
}

static void sleep_for(long long duration) {
  ahead += duration;
  if (duration < PAUSE_NS) return;
  told(0, "pause", "");
  if (++pauses == pause_at && kind == SHRINKS) shrink(), met++;
}

int nanosleep(const struct timespec *duration, struct timespec *left) {
  REAL(int, nanosleep, const struct timespec *, struct timespec *);
  if (!is_of_library(__builtin_return_address(0))) return real(duration, left);
  return sleep_for(nanoseconds(duration)), 0;
}

int clock_nanosleep(clockid_t which, int flags, const struct timespec *time, struct timespec *left) {
  REAL(int, clock_nanosleep, clockid_t, int, const struct timespec *, struct timespec *);
  if (!is_of_library(__builtin_return_address(0))) return real(which, flags, time, left);
  return sleep_for(nanoseconds(time) - (flags & TIMER_ABSTIME ? clock_of_library() : 0)), 0;
}

/* Waiting for another thread until an instant of that clock: a look at it every millisecond. */
long syscall(long number, ...) {
  va_list more;
  va_start(more, number);
  long a[6];
  for (int at = 0; at < 6; at++) a[at] = va_arg(more, long);
  va_end(more);
  if (!system_call) system_call = dlsym(RTLD_NEXT, "syscall");
  int waits = number == SYS_futex && (a[1] & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET && a[3];
  if (!waits || !is_of_library(__builtin_return_address(0)))
    return system_call(number, a[0], a[1], a[2], a[3], a[4], a[5]);
  long long until = nanoseconds((struct timespec *)a[3]);
  for (;;) {
    struct timespec soon;
    read_clock(CLOCK_MONOTONIC, &soon);
    long long left = until - nanoseconds(&soon) - ahead;
    long long slice = nanoseconds(&soon) + (left < 0 ? 0 : left < 1000000 ? left : 1000000);
    soon = (struct timespec){slice / SECOND, slice % SECOND};
    long done = system_call(number, a[0], a[1], a[2], &soon, a[4], a[5]);
    if (done != -1 || errno != ETIMEDOUT || left <= 0) return done;
  }
}
