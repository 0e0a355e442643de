/* Records what a process does to the files below a folder: preloaded by tests, replayed by
 * `tests/python/power_failure.py`.
 *
 *   oplog_begin(FOLDER, LOG)   record from here on; a second call begins another record
 *   oplog_mark(TEXT)           write down that something was acknowledged
 *
 * Several processes append to one log. A record is a head, a name, a second name and data:
 *
 *   u32 kind   u32 bytes of the name   u32 bytes of the second name   u32 bytes of data
 *   u64 inode  u64 second inode        u64 offset or size
 *
 * Files are named by their inodes, names by the inode of their folder. Only calls through the C library
 * that succeed are seen; what is written through a mapping is not.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum kind { CREATE = 1, FOLDER, LINK, RENAME, REMOVE, WRITE, TRUNCATE, SYNC, MARK };

struct head {
  uint32_t kind, name, second, data;
  uint64_t inode, other, offset;
};

static char root[PATH_MAX];
static int log_descriptor = -1;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void put(struct head head, const char *name, const char *second, const void *data) {
  if (log_descriptor < 0) return;
  head.name = strlen(name), head.second = strlen(second);
  struct iovec parts[] = {{&head, sizeof head}, {(void *)name, head.name}, {(void *)second, head.second}, {(void *)data, head.data}};
  syscall(SYS_writev, log_descriptor, parts, 4);
}

void oplog_begin(const char *folder, const char *log) {
  if (log_descriptor >= 0) syscall(SYS_close, log_descriptor);
  if (!realpath(folder, root)) abort();
  log_descriptor = syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
}

void oplog_mark(const char *text) { put((struct head){MARK}, text, "", ""); }

__attribute__((constructor)) void oplog_from_the_environment(void) {
  const char *folder = getenv("OPLOG_FOLDER"), *log = getenv("OPLOG_LOG");
  if (folder && log) oplog_begin(folder, log);
}

static int is_below(const char *path) {
  size_t length = strlen(root);
  return log_descriptor >= 0 && !strncmp(path, root, length) && (path[length] == '/' || !path[length]);
}

/* Whether an open file is below the folder; its inode. */
static int follows(int descriptor, uint64_t *inode) {
  if (log_descriptor < 0 || descriptor == log_descriptor) return 0;
  char link[64], path[PATH_MAX];
  snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
  long length = syscall(SYS_readlink, link, path, sizeof path - 1);
  if (length <= 0) return 0;
  path[length] = 0;
  struct stat found;
  if (!is_below(path) || fstat(descriptor, &found)) return 0;
  *inode = found.st_ino;
  return 1;
}

/* The folder of a path and the name in it; 0 where that is elsewhere. */
static int place(int folder, const char *path, uint64_t *inode, char *name) {
  if (log_descriptor < 0 || !path || !*path) return 0;
  char whole[2 * PATH_MAX], real[PATH_MAX];
  if (path[0] == '/' || folder == AT_FDCWD) snprintf(whole, sizeof whole, "%s", path);
  else snprintf(whole, sizeof whole, "/proc/self/fd/%d/%s", folder, path);
  while (strlen(whole) > 1 && whole[strlen(whole) - 1] == '/') whole[strlen(whole) - 1] = 0;
  char *last = strrchr(whole, '/');
  snprintf(name, NAME_MAX + 1, "%s", last ? last + 1 : whole);
  if (last) *(last == whole ? last + 1 : last) = 0;
  else strcpy(whole, ".");
  struct stat found;
  if (!realpath(whole, real) || !is_below(real) || stat(real, &found)) return 0;
  *inode = found.st_ino;
  return 1;
}

static uint64_t inode_at(int folder, const char *path) {
  struct stat found;
  return fstatat(folder, path, &found, AT_SYMLINK_NOFOLLOW) ? 0 : found.st_ino;
}

#define REAL(type, name, parameters)                                                              \
  static type(*real) parameters;                                                                  \
  if (!real) real = dlsym(RTLD_NEXT, #name)

static int opened(int descriptor, int folder, const char *path, int flags, uint64_t before) {
  int saved = errno;
  uint64_t parent, inode;
  char name[NAME_MAX + 1];
  pthread_mutex_lock(&lock);
  if (descriptor >= 0 && follows(descriptor, &inode)) {
    if (!before && flags & O_CREAT && place(folder, path, &parent, name))
      put((struct head){CREATE, .inode = parent, .other = inode}, name, "", "");
    else if (flags & O_TRUNC && (flags & O_ACCMODE) != O_RDONLY)
      put((struct head){TRUNCATE, .inode = inode}, "", "", "");
  }
  pthread_mutex_unlock(&lock);
  errno = saved;
  return descriptor;
}

#define OPEN(name)                                                                                \
  int name(const char *path, int flags, ...) {                                                    \
    REAL(int, name, (const char *, int, ...));                                                    \
    va_list more; va_start(more, flags); int mode = va_arg(more, int); va_end(more);              \
    uint64_t before = flags & O_CREAT ? inode_at(AT_FDCWD, path) : 1;                             \
    return opened(real(path, flags, mode), AT_FDCWD, path, flags, before);                        \
  }
OPEN(open) OPEN(open64)

#define OPENAT(name)                                                                              \
  int name(int folder, const char *path, int flags, ...) {                                        \
    REAL(int, name, (int, const char *, int, ...));                                               \
    va_list more; va_start(more, flags); int mode = va_arg(more, int); va_end(more);              \
    uint64_t before = flags & O_CREAT ? inode_at(folder, path) : 1;                               \
    return opened(real(folder, path, flags, mode), folder, path, flags, before);                  \
  }
OPENAT(openat) OPENAT(openat64)

static int made_folder(int status, int folder, const char *path) {
  uint64_t parent;
  char name[NAME_MAX + 1];
  if (!status && place(folder, path, &parent, name))
    put((struct head){FOLDER, .inode = parent, .other = inode_at(folder, path)}, name, "", "");
  return status;
}
int mkdir(const char *path, mode_t mode) {
  REAL(int, mkdir, (const char *, mode_t));
  return made_folder(real(path, mode), AT_FDCWD, path);
}
int mkdirat(int folder, const char *path, mode_t mode) {
  REAL(int, mkdirat, (int, const char *, mode_t));
  return made_folder(real(folder, path, mode), folder, path);
}

static int renamed(int status, int from, const char *path, int to, const char *other) {
  uint64_t a, b;
  char one[NAME_MAX + 1], two[NAME_MAX + 1];
  if (!status && place(from, path, &a, one) && place(to, other, &b, two))
    put((struct head){RENAME, .inode = a, .other = b}, one, two, "");
  return status;
}
int rename(const char *path, const char *other) {
  REAL(int, rename, (const char *, const char *));
  return renamed(real(path, other), AT_FDCWD, path, AT_FDCWD, other);
}
int renameat(int from, const char *path, int to, const char *other) {
  REAL(int, renameat, (int, const char *, int, const char *));
  return renamed(real(from, path, to, other), from, path, to, other);
}
int renameat2(int from, const char *path, int to, const char *other, unsigned flags) {
  REAL(int, renameat2, (int, const char *, int, const char *, unsigned));
  return renamed(real(from, path, to, other, flags), from, path, to, other);
}

static int linked(int status, int to, const char *path) {
  uint64_t parent;
  char name[NAME_MAX + 1];
  if (!status && place(to, path, &parent, name))
    put((struct head){LINK, .inode = parent, .other = inode_at(to, path)}, name, "", "");
  return status;
}
int link(const char *from, const char *to) {
  REAL(int, link, (const char *, const char *));
  return linked(real(from, to), AT_FDCWD, to);
}
int linkat(int a, const char *from, int b, const char *to, int flags) {
  REAL(int, linkat, (int, const char *, int, const char *, int));
  return linked(real(a, from, b, to, flags), b, to);
}

static int removed(int status, int folder, const char *path) {
  uint64_t parent;
  char name[NAME_MAX + 1];
  if (!status && place(folder, path, &parent, name)) put((struct head){REMOVE, .inode = parent}, name, "", "");
  return status;
}
int unlink(const char *path) {
  REAL(int, unlink, (const char *));
  return removed(real(path), AT_FDCWD, path);
}
int unlinkat(int folder, const char *path, int flags) {
  REAL(int, unlinkat, (int, const char *, int));
  return removed(real(folder, path, flags), folder, path);
}
int rmdir(const char *path) {
  REAL(int, rmdir, (const char *));
  return removed(real(path), AT_FDCWD, path);
}

static ssize_t wrote(ssize_t moved, int descriptor, const void *from, off_t offset) {
  uint64_t inode;
  if (moved > 0 && follows(descriptor, &inode))
    put((struct head){WRITE, .data = moved, .inode = inode, .offset = offset}, "", "", from);
  return moved;
}

/* Where a write without an offset goes. */
static off_t position(int descriptor) {
  if (log_descriptor < 0) return 0;
  struct stat found;
  if (fcntl(descriptor, F_GETFL) & O_APPEND && !fstat(descriptor, &found)) return found.st_size;
  return lseek(descriptor, 0, SEEK_CUR);
}

ssize_t write(int descriptor, const void *from, size_t size) {
  REAL(ssize_t, write, (int, const void *, size_t));
  uint64_t inode;
  if (!follows(descriptor, &inode)) return real(descriptor, from, size);
  pthread_mutex_lock(&lock);
  off_t at = position(descriptor);
  ssize_t moved = wrote(real(descriptor, from, size), descriptor, from, at);
  pthread_mutex_unlock(&lock);
  return moved;
}
ssize_t writev(int descriptor, const struct iovec *parts, int count) {
  REAL(ssize_t, writev, (int, const struct iovec *, int));
  uint64_t inode;
  if (!follows(descriptor, &inode)) return real(descriptor, parts, count);
  ssize_t whole = 0;
  for (int at = 0; at < count; at++) {
    ssize_t moved = write(descriptor, parts[at].iov_base, parts[at].iov_len);
    if (moved < 0) return whole ? whole : moved;
    whole += moved;
  }
  return whole;
}

#define PWRITE(name)                                                                              \
  ssize_t name(int descriptor, const void *from, size_t size, off_t offset) {                     \
    REAL(ssize_t, name, (int, const void *, size_t, off_t));                                      \
    return wrote(real(descriptor, from, size, offset), descriptor, from, offset);                 \
  }
PWRITE(pwrite) PWRITE(pwrite64)

/* What was moved within the kernel is read again. */
static ssize_t copied(ssize_t moved, int descriptor, off_t at) {
  uint64_t inode;
  if (moved <= 0 || !follows(descriptor, &inode)) return moved;
  char link[64], *data = malloc(moved);
  snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
  int again = syscall(SYS_openat, AT_FDCWD, link, O_RDONLY | O_CLOEXEC);
  if (pread(again, data, moved, at) == moved) wrote(moved, descriptor, data, at);
  syscall(SYS_close, again);
  free(data);
  return moved;
}
#define SENDFILE(name)                                                                            \
  ssize_t name(int to, int from, off_t *offset, size_t size) {                                    \
    REAL(ssize_t, name, (int, int, off_t *, size_t));                                             \
    off_t at = position(to);                                                                      \
    return copied(real(to, from, offset, size), to, at);                                          \
  }
SENDFILE(sendfile) SENDFILE(sendfile64)
ssize_t copy_file_range(int from, off64_t *a, int to, off64_t *b, size_t size, unsigned flags) {
  REAL(ssize_t, copy_file_range, (int, off64_t *, int, off64_t *, size_t, unsigned));
  off_t at = b ? *b : position(to);
  return copied(real(from, a, to, b, size, flags), to, at);
}

#define TRUNCATED(name)                                                                           \
  int name(int descriptor, off_t size) {                                                          \
    REAL(int, name, (int, off_t));                                                                \
    int status = real(descriptor, size);                                                          \
    uint64_t inode;                                                                               \
    if (!status && follows(descriptor, &inode))                                                   \
      put((struct head){TRUNCATE, .inode = inode, .offset = size}, "", "", "");                   \
    return status;                                                                                \
  }
TRUNCATED(ftruncate) TRUNCATED(ftruncate64)

#define SYNCED(name)                                                                              \
  int name(int descriptor) {                                                                      \
    REAL(int, name, (int));                                                                       \
    uint64_t inode;                                                                               \
    int is_ours = follows(descriptor, &inode), status = real(descriptor);                         \
    if (!status && is_ours) put((struct head){SYNC, .inode = inode}, "", "", "");                 \
    return status;                                                                                \
  }
SYNCED(fsync) SYNCED(fdatasync)
