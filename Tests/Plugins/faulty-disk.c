// A disk with faults, to be preloaded (LD_PRELOAD) into a daemon. $FAULTY_DISK names a file that says what fails now:
//
//     OPERATION ERRNO PATH
//
// for descriptors of files whose path contains PATH, or ends in it if PATH ends in `$`. OPERATION is `read`, `write`,
// `sync`, `sync-once`, `stall`, `hang` or `trace`; an empty file stands for a disk without faults. Each fault is
// appended to $FAULTY_DISK.log.
//
// `sync-once` does what Linux does when a disk cannot write back: what was written to the file since its last sync is
// lost, each descriptor that is open on the file is told so by its next sync, and every other sync succeeds. `stall`
// lets no sync return as long as it lasts, and `hang` no statvfs of the path. `trace` only logs what is synced. `kill`
// kills the process before the call number ERRNO, from 1, that writes, syncs or renames such a file, and `kill-after`
// after it. `fail` has the call number ERRNO, from 1, that writes or syncs such a file fail with EIO, and no other one.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { MAXIMUM_DESCRIPTORS = 1024, MAXIMUM_WRITES = 4096 };

typedef struct written { dev_t device; ino_t inode; off_t offset; size_t size; } written;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static written writes[MAXIMUM_WRITES];
static int write_count;
static struct { dev_t device; ino_t inode; } lost[64];
static int lost_count;
/// Whether the next sync of a descriptor has an error to tell.
static char is_told[MAXIMUM_DESCRIPTORS];

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

typedef struct fault { char operation[16]; int error; char path[4096]; } fault;

static fault current(void) {
    fault fault = {"", 0, ""};
    char text[4200] = "";
    const char *control = getenv("FAULTY_DISK");
    int file = control ? REAL(open)(control, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) return fault;
    ssize_t size = REAL(read)(file, text, sizeof text - 1);
    REAL(close)(file);
    if (size > 0) sscanf(text, "%15s %d %4095s", fault.operation, &fault.error, fault.path);
    return fault;
}

/// The path of a descriptor, if it is one of those that the fault is about.
static int concerns(const fault *fault, int descriptor, char path[4096]) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t size = readlink(link, path, 4095);
    if (size < 0 || !*fault->path) return 0;
    path[size] = 0;
    size_t length = strlen(fault->path) - 1;
    if (fault->path[length] == '$')
        return (size_t)size >= length && memcmp(path + size - length, fault->path, length) == 0;
    return path[0] == '/' && strstr(path, fault->path) != NULL;
}

static void report(const char *operation, const char *path) {
    char name[4200], line[4200];
    snprintf(name, sizeof name, "%s.log", getenv("FAULTY_DISK"));
    int size = snprintf(line, sizeof line, "%s %s\n", operation, path);
    int file = REAL(open)(name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (file < 0) return;
    if (REAL(write)(file, line, size) < 0) abort();
    REAL(close)(file);
}

static int fail_count;

/// Whether a call on a descriptor is to fail, with errno.
static int fails(const char *operation, int descriptor) {
    int code = errno;
    char path[4096];
    fault fault = current();
    int is_one = strcmp(fault.operation, "fail") == 0;
    if (!is_one) fail_count = 0;
    int is_counted = is_one && (strcmp(operation, "write") == 0 || strcmp(operation, "sync") == 0);
    int does = (is_counted || strcmp(fault.operation, operation) == 0) && concerns(&fault, descriptor, path);
    if (does && is_one) does = __atomic_add_fetch(&fail_count, 1, __ATOMIC_SEQ_CST) == fault.error;
    if (does) report(operation, path);
    errno = !does ? code : is_one ? EIO : fault.error;
    return does;
}

// MARK: Kills

static int kill_count;

/// Counts a call on a file of this path, or of this descriptor, and kills the process where it is the one.
static void count_call(const char *operation, const char *name, int descriptor, int is_after) {
    int code = errno;
    char path[4096] = "";
    fault fault = current();
    int is_kill = strcmp(fault.operation, "kill") == 0, is_kill_after = strcmp(fault.operation, "kill-after") == 0;
    if (!is_kill && !is_kill_after) kill_count = 0;
    if (is_kill != is_kill_after && is_after == is_kill_after
        && (name ? strstr(name, fault.path) != NULL : concerns(&fault, descriptor, path))) {
        if (__atomic_add_fetch(&kill_count, 1, __ATOMIC_SEQ_CST) == fault.error) {
            report(operation, name ? name : path);
            kill(getpid(), SIGKILL);
            for (;;) pause();
        }
    }
    errno = code;
}

int rename(const char *old, const char *new) {
    count_call("rename", new, -1, 0);
    int result = REAL(rename)(old, new);
    count_call("rename", new, -1, 1);
    return result;
}

// MARK: Questions

int statvfs(const char *path, struct statvfs *system) {
    for (int count = 0;; count++) {
        fault fault = current();
        if (strcmp(fault.operation, "hang") != 0 || !strstr(path, fault.path)) return REAL(statvfs)(path, system);
        if (count == 0) report("hang", path);
        usleep(10000);
    }
}

// MARK: Writing

static void note(int descriptor, off_t offset, ssize_t size) {
    struct stat status;
    int code = errno;
    if (size > 0 && fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode)) {
        pthread_mutex_lock(&lock);
        if (write_count < MAXIMUM_WRITES)
            writes[write_count++] = (written){status.st_dev, status.st_ino, offset, size};
        pthread_mutex_unlock(&lock);
    }
    errno = code;
}

ssize_t write(int descriptor, const void *bytes, size_t size) {
    if (fails("write", descriptor)) return -1;
    count_call("write", NULL, descriptor, 0);
    off_t offset = lseek(descriptor, 0, SEEK_CUR);
    ssize_t count = REAL(write)(descriptor, bytes, size);
    count_call("write", NULL, descriptor, 1);
    note(descriptor, offset, count);
    return count;
}

ssize_t pwrite(int descriptor, const void *bytes, size_t size, off_t offset) {
    if (fails("write", descriptor)) return -1;
    ssize_t count = REAL(pwrite)(descriptor, bytes, size, offset);
    note(descriptor, offset, count);
    return count;
}

ssize_t pwrite64(int descriptor, const void *bytes, size_t size, off64_t offset) {
    return pwrite(descriptor, bytes, size, offset);
}

// MARK: Reading

ssize_t read(int descriptor, void *bytes, size_t size) {
    return fails("read", descriptor) ? -1 : REAL(read)(descriptor, bytes, size);
}

ssize_t pread(int descriptor, void *bytes, size_t size, off_t offset) {
    return fails("read", descriptor) ? -1 : REAL(pread)(descriptor, bytes, size, offset);
}

ssize_t pread64(int descriptor, void *bytes, size_t size, off64_t offset) {
    return pread(descriptor, bytes, size, offset);
}

// MARK: Syncing

/// Forgets what was written to a file, which is on the disk now or was lost.
static void forget(const struct stat *status, int descriptor, int loses) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    int file = loses && S_ISREG(status->st_mode) ? REAL(open)(link, O_WRONLY | O_CLOEXEC) : -1;
    int kept = 0;
    for (int n = 0; n < write_count; n++) {
        written *each = &writes[n];
        if (each->device != status->st_dev || each->inode != status->st_ino) {
            writes[kept++] = *each;
        } else if (file >= 0 && each->offset < status->st_size) {
            off_t end = each->offset + (off_t)each->size;
            size_t size = (end < status->st_size ? end : status->st_size) - each->offset;
            void *zeros = calloc(1, size);
            if (REAL(pwrite)(file, zeros, size, each->offset) < 0) abort();
            free(zeros);
        }
    }
    write_count = kept;
    if (file >= 0) REAL(close)(file);
}

/// Has what was written be lost, unless that has happened to this file already.
static void lose(const struct stat *status, int descriptor) {
    for (int n = 0; n < lost_count; n++)
        if (lost[n].device == status->st_dev && lost[n].inode == status->st_ino) return;
    if (lost_count == sizeof lost / sizeof *lost) return;
    lost[lost_count].device = status->st_dev;
    lost[lost_count++].inode = status->st_ino;
    forget(status, descriptor, 1);
    for (int each = 0; each < MAXIMUM_DESCRIPTORS; each++) {
        struct stat other;
        if (fstat(each, &other) == 0 && other.st_dev == status->st_dev && other.st_ino == status->st_ino)
            is_told[each] = 1;
    }
}

static int sync_counted(int descriptor, int (*sync)(int)) {
    count_call("sync", NULL, descriptor, 0);
    int result = sync(descriptor);
    count_call("sync", NULL, descriptor, 1);
    return result;
}

static int sync_file(int descriptor, int (*sync)(int)) {
    if (fails("sync", descriptor)) return -1;
    while (fails("stall", descriptor)) usleep(2000);
    char path[4096] = "";
    struct stat status;
    fault fault = current();
    int is_concerned = concerns(&fault, descriptor, path);
    if (is_concerned && strcmp(fault.operation, "trace") == 0) report("synced", path);
    if (fstat(descriptor, &status) != 0 || descriptor >= MAXIMUM_DESCRIPTORS) return sync_counted(descriptor, sync);
    pthread_mutex_lock(&lock);
    if (is_concerned && strcmp(fault.operation, "sync-once") == 0) lose(&status, descriptor);
    int has_failed = is_told[descriptor];
    is_told[descriptor] = 0;
    if (!has_failed) forget(&status, descriptor, 0);
    pthread_mutex_unlock(&lock);
    if (!has_failed) return sync_counted(descriptor, sync);
    report("sync-once", path);
    // What was lost is there to be read before the program is told.
    usleep(100000);
    errno = EIO;
    return -1;
}

int fsync(int descriptor) { return sync_file(descriptor, REAL(fsync)); }

int fdatasync(int descriptor) { return sync_file(descriptor, REAL(fdatasync)); }

int close(int descriptor) {
    if (descriptor >= 0 && descriptor < MAXIMUM_DESCRIPTORS) is_told[descriptor] = 0;
    return REAL(close)(descriptor);
}
