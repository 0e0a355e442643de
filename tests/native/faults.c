/* Makes the n-th system call of a process fail that concerns certain files: preloaded by tests.
 *
 *   FAULT_PATHS   substrings of paths, separated by colons: whose files count
 *   FAULT_LOG     a line for each call that counts: its number, its name, its path
 *   FAULT_AT      the number of the call that fails, from 1 on; 0: none
 *   FAULT_ERRNO   with which errno
 *   FAULT_FROM    1: every later call that changes something fails as well, as on a full disk
 *   FAULT_HANG    1: the call does not fail, it never ends
 *
 * Only calls through the C library are seen.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static char *paths;
static int at, error_number, from_then_on, hang, log_descriptor = -1;
static int count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

__attribute__((constructor)) static void begin(void) {
  const char *text;
  paths = getenv("FAULT_PATHS");
  at = (text = getenv("FAULT_AT")) ? atoi(text) : 0;
  error_number = (text = getenv("FAULT_ERRNO")) ? atoi(text) : EIO;
  from_then_on = (text = getenv("FAULT_FROM")) ? atoi(text) : 0;
  hang = (text = getenv("FAULT_HANG")) ? atoi(text) : 0;
  if ((text = getenv("FAULT_LOG")))
    log_descriptor = syscall(SYS_openat, AT_FDCWD, text, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
}

static int counts(const char *path) {
  if (!paths || !path) return 0;
  char copy[4096], *rest = copy, *part;
  snprintf(copy, sizeof copy, "%s", paths);
  while ((part = strsep(&rest, ":")))
    if (*part && strstr(path, part)) return 1;
  return 0;
}

/* Whether this call fails. */
static int fails(const char *name, const char *path, int changes) {
  if (!counts(path)) return 0;
  pthread_mutex_lock(&lock);
  int number = ++count;
  pthread_mutex_unlock(&lock);
  char line[4200];
  int length = snprintf(line, sizeof line, "%d %s %s\n", number, name, path);
  if (log_descriptor >= 0) syscall(SYS_write, log_descriptor, line, length);
  if (!at || number < at || (number > at && !(from_then_on && changes))) return 0;
  if (hang)
    for (;;) pause();
  errno = error_number;
  return 1;
}

/* The path of an open descriptor, whoever opened it and however. */
static const char *name_of(int descriptor) {
  static __thread char found[4096];
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
  long length = syscall(SYS_readlink, link, found, sizeof found - 1);
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
ON_FILE(ssize_t, write, (int descriptor, const void *from, size_t size), (descriptor, from, size), 1)
ON_FILE(ssize_t, pread, (int descriptor, void *to, size_t size, off_t offset), (descriptor, to, size, offset), 0)
ON_FILE(ssize_t, pread64, (int descriptor, void *to, size_t size, off_t offset), (descriptor, to, size, offset), 0)
ON_FILE(ssize_t, pwrite, (int descriptor, const void *from, size_t size, off_t offset), (descriptor, from, size, offset), 1)
ON_FILE(ssize_t, pwrite64, (int descriptor, const void *from, size_t size, off_t offset), (descriptor, from, size, offset), 1)

/* A write that is durable when it is over has a name of its own. */
ssize_t pwritev2(int descriptor, const struct iovec *from, int pieces, off_t offset, int flags) {
  static ssize_t (*real)(int, const struct iovec *, int, off_t, int);
  if (!real) real = dlsym(RTLD_NEXT, "pwritev2");
  if (fails(flags & RWF_DSYNC ? "pwritev2:dsync" : "pwritev2", name_of(descriptor), 1)) return -1;
  return real(descriptor, from, pieces, offset, flags);
}
