/* A disk that fails at a chosen call; loaded before the C library (LD_PRELOAD).
 *
 * It counts the calls that change files below the folder FAULTY_FOLDER: writes, syncs, truncations, and names that are made, moved or
 * removed. At call number FAULTY_AT (the first is 1) it does what FAULTY_MODE says:
 *
 *   EIO ENOSPC EROFS EDQUOT   fail with this error (with FAULTY_LASTING: from that call on)
 *   short                     write half and say so; what is no write is done
 *   torn                      the same, and the next call finds the disk full
 *   before, after             SIGKILL, before or after the call
 *   cut                       write half, then SIGKILL
 *
 * FAULTY_END is the number of a later call before which the process is killed, whatever came before. With FAULTY_ONLY (open, write, sync, truncate, allocate, rename, unlink, mkdir) calls of that kind alone are counted.
 * The call is named on the standard error. Rust and SQLite both call the C library, so both are seen. Shared memory
 * (names that end in -shm) is no disk and is left alone.
 *
 * If FAULTY_SHADOW names a folder, that becomes what the disk would hold if the power failed now, by the strictest
 * reading of the rules: what was written counts when its file is synced, and a name counts when its folder is synced. A sync
 * that fails loses what was written since the one before it, for good: systems mark such pages as clean, so that
 * a second sync is successful and writes nothing. So does the end of the process, for what it had not synced: to whoever
 * comes next it may look as if it were there. FOLDER/names has lines "inode name"; FOLDER/inode has the bytes.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { FILES = 4096, RANGES = 1 << 16 };

static struct { ino_t inode; off_t from, to; } range[RANGES];
static int ranges;
static char ours[FILES];
static long calls, at = -1, end, struck_before;
static int error_code, lasting, half, torn, kill_before, kill_after;
static const char *folder, *shadow, *only;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void settings(void) {
    if (at >= 0) return;
    const char *text = getenv("FAULTY_AT"), *mode = getenv("FAULTY_MODE");
    at = text ? atol(text) : 0;
    end = getenv("FAULTY_END") ? atol(getenv("FAULTY_END")) : 0;
    folder = getenv("FAULTY_FOLDER");
    shadow = getenv("FAULTY_SHADOW");
    only = getenv("FAULTY_ONLY");
    lasting = getenv("FAULTY_LASTING") != NULL;
    if (!mode) mode = "";
    if (!strcmp(mode, "EIO")) error_code = EIO;
    if (!strcmp(mode, "ENOSPC")) error_code = ENOSPC;
    if (!strcmp(mode, "EROFS")) error_code = EROFS;
    if (!strcmp(mode, "EDQUOT")) error_code = EDQUOT;
    torn = !strcmp(mode, "torn");
    half = torn || !strcmp(mode, "short") || !strcmp(mode, "cut");
    kill_before = !strcmp(mode, "before");
    kill_after = !strcmp(mode, "after") || !strcmp(mode, "cut");
}

static void die(void) {
    syscall(SYS_kill, getpid(), SIGKILL);
    for (;;) pause();
}

static int below(const char *path) {
    settings();
    if (!folder || !path || strncmp(path, folder, strlen(folder))) return 0;
    size_t length = strlen(path);
    return length < 4 || strcmp(path + length - 4, "-shm");
}

static int held(int fd) { return fd >= 0 && fd < FILES && ours[fd]; }

/* Whether this call is the one that fails. */
static int strikes(const char *name) {
    if (only && strcmp(only, name)) return 0;
    long now = ++calls;
    if (end && now == end) die();
    if (!at || now < at || (now > at && !lasting)) return 0;
    if (now == at && !struck_before++) dprintf(2, "fault %ld %s\n", now, name);
    if (kill_before) die();
    return 1;
}

static long done(int struck, long result) {
    if (struck && kill_after) die();
    return result;
}

/* What was written, until it is synced. */
static void dirty(int fd, off_t from, ssize_t length) {
    struct stat status;
    if (!shadow || length <= 0 || fstat(fd, &status)) return;
    if (ranges == RANGES) abort();
    range[ranges].inode = status.st_ino;
    range[ranges].from = from;
    range[ranges++].to = from + length;
}

static void synced_folder(int fd) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/names", shadow); /* there is one folder */
    int out = syscall(SYS_openat, AT_FDCWD, path, O_CREAT | O_TRUNC | O_WRONLY, 0600);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    DIR *list = opendir(path);
    for (struct dirent *entry; list && (entry = readdir(list));) {
        char line[PATH_MAX];
        int length = snprintf(line, sizeof line, "%lu %s\n", (unsigned long)entry->d_ino, entry->d_name);
        if (entry->d_type == DT_REG) syscall(SYS_write, out, line, length);
    }
    if (list) closedir(list);
    syscall(SYS_close, out);
}

static void synced(int fd, int well) {
    struct stat status;
    if (!shadow || fstat(fd, &status)) return;
    if (S_ISDIR(status.st_mode)) {
        if (well) synced_folder(fd);
        return;
    }
    char path[PATH_MAX], real[64], bytes[4096];
    snprintf(path, sizeof path, "%s/%lu", shadow, (unsigned long)status.st_ino);
    snprintf(real, sizeof real, "/proc/self/fd/%d", fd);
    int in = syscall(SYS_openat, AT_FDCWD, real, O_RDONLY, 0);
    int out = well ? syscall(SYS_openat, AT_FDCWD, path, O_CREAT | O_RDWR, 0600) : -1;
    if (well) syscall(SYS_ftruncate, out, status.st_size);
    int kept = 0;
    for (int i = 0; i < ranges; i++) {
        if (range[i].inode != status.st_ino) {
            range[kept++] = range[i];
            continue;
        }
        for (off_t place = range[i].from; well && place < range[i].to;) {
            size_t wanted = range[i].to - place < 4096 ? range[i].to - place : 4096;
            ssize_t got = syscall(SYS_pread64, in, bytes, wanted, place);
            if (got <= 0) break;
            syscall(SYS_pwrite64, out, bytes, got, place);
            place += got;
        }
    }
    ranges = kept;
    syscall(SYS_close, in);
    if (well) syscall(SYS_close, out);
}

#define LOCKED(result) \
    ({ pthread_mutex_lock(&lock); long value_ = (result); pthread_mutex_unlock(&lock); value_; })

static long fail(int struck) {
    if (!struck || !error_code) return 0;
    errno = error_code;
    return -1;
}

/* Files */

static long open_file(int at_fd, const char *path, int flags, mode_t mode) {
    int seen = below(path), struck = 0;
    if (seen && flags & (O_CREAT | O_TRUNC)) {
        struck = strikes("open");
        if (fail(struck)) return -1;
    }
    long fd = syscall(SYS_openat, at_fd, path, flags, mode);
    if (fd >= 0 && fd < FILES) ours[fd] = seen;
    return done(struck, fd);
}

#define MODE(flags) \
    ({ mode_t mode_ = 0; if (flags & (O_CREAT | O_TMPFILE)) { va_list rest; va_start(rest, flags); \
       mode_ = va_arg(rest, mode_t); va_end(rest); } mode_; })

int open(const char *path, int flags, ...) { mode_t mode = MODE(flags); return LOCKED(open_file(AT_FDCWD, path, flags, mode)); }
int open64(const char *path, int flags, ...) { mode_t mode = MODE(flags); return LOCKED(open_file(AT_FDCWD, path, flags, mode)); }
int openat(int fd, const char *path, int flags, ...) { mode_t mode = MODE(flags); return LOCKED(open_file(fd, path, flags, mode)); }
int openat64(int fd, const char *path, int flags, ...) { mode_t mode = MODE(flags); return LOCKED(open_file(fd, path, flags, mode)); }

int close(int fd) {
    if (fd >= 0 && fd < FILES) ours[fd] = 0;
    return syscall(SYS_close, fd);
}

static long write_file(int fd, const void *bytes, size_t length, off_t place) {
    if (!held(fd)) return place < 0 ? syscall(SYS_write, fd, bytes, length) : syscall(SYS_pwrite64, fd, bytes, length, place);
    int struck = strikes("write");
    if (fail(struck)) return -1;
    if (struck && half) length /= 2;
    off_t from = place < 0 ? lseek(fd, 0, SEEK_CUR) : place;
    long wrote = place < 0 ? syscall(SYS_write, fd, bytes, length) : syscall(SYS_pwrite64, fd, bytes, length, place);
    dirty(fd, from, wrote);
    if (struck && torn) {
        at = calls + 1;
        half = torn = 0;
        error_code = ENOSPC;
        only = NULL;
    }
    return done(struck, wrote);
}

ssize_t write(int fd, const void *bytes, size_t length) {
    return held(fd) ? LOCKED(write_file(fd, bytes, length, -1)) : syscall(SYS_write, fd, bytes, length);
}
ssize_t pwrite(int fd, const void *bytes, size_t length, off_t place) { return LOCKED(write_file(fd, bytes, length, place)); }
ssize_t pwrite64(int fd, const void *bytes, size_t length, off64_t place) { return LOCKED(write_file(fd, bytes, length, place)); }

ssize_t writev(int fd, const struct iovec *parts, int count) {
    if (!held(fd)) return syscall(SYS_writev, fd, parts, count);
    return count ? write(fd, parts[0].iov_base, parts[0].iov_len) : 0;
}

static long sync_file(int number, int fd) {
    if (!held(fd)) return syscall(number, fd);
    int struck = strikes("sync");
    if (fail(struck)) { synced(fd, 0); errno = error_code; return -1; }
    long result = syscall(number, fd);
    synced(fd, result == 0);
    return done(struck, result);
}

int fsync(int fd) { return LOCKED(sync_file(SYS_fsync, fd)); }
int fdatasync(int fd) { return LOCKED(sync_file(SYS_fdatasync, fd)); }

static long truncate_file(int fd, off_t length) {
    int struck = held(fd) && strikes("truncate");
    if (fail(struck)) return -1;
    return done(struck, syscall(SYS_ftruncate, fd, length));
}

int ftruncate(int fd, off_t length) { return LOCKED(truncate_file(fd, length)); }
int ftruncate64(int fd, off64_t length) { return LOCKED(truncate_file(fd, length)); }

static long allocate(int fd, int mode, off_t place, off_t length) {
    int struck = held(fd) && strikes("allocate");
    if (fail(struck)) return -1;
    return done(struck, syscall(SYS_fallocate, fd, mode, place, length));
}

int fallocate(int fd, int mode, off_t place, off_t length) { return LOCKED(allocate(fd, mode, place, length)); }
int fallocate64(int fd, int mode, off64_t place, off64_t length) { return LOCKED(allocate(fd, mode, place, length)); }

/* Names */

static long name_call(const char *what, const char *path, long number, long a, long b, long c, long d) {
    int struck = below(path) && strikes(what);
    if (fail(struck)) return -1;
    return done(struck, syscall(number, a, b, c, d));
}

int rename(const char *from, const char *to) {
    return LOCKED(name_call("rename", to, SYS_renameat, AT_FDCWD, (long)from, AT_FDCWD, (long)to));
}
int unlink(const char *path) { return LOCKED(name_call("unlink", path, SYS_unlinkat, AT_FDCWD, (long)path, 0, 0)); }
int mkdir(const char *path, mode_t mode) { return LOCKED(name_call("mkdir", path, SYS_mkdirat, AT_FDCWD, (long)path, mode, 0)); }
