// Not in the header: Swift imports Glibc without it, and the two definitions of some structs would conflict.
#define _GNU_SOURCE

#include "CLinux.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stddef.h>
#include <time.h>
#include <unistd.h>

#ifndef SO_PEERGROUPS
#define SO_PEERGROUPS 59
#endif

int clinux_peer_credentials(int descriptor, pid_t *pid, uid_t *uid, gid_t *gid) {
    struct ucred peer;
    socklen_t size = sizeof peer;
    if (getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return -1;
    *pid = peer.pid;
    *uid = peer.uid;
    *gid = peer.gid;
    return 0;
}

int clinux_peer_groups(int descriptor, gid_t *groups, int capacity) {
    socklen_t size = (socklen_t)((size_t)capacity * sizeof(gid_t));
    if (getsockopt(descriptor, SOL_SOCKET, SO_PEERGROUPS, groups, &size) != 0) return -1;
    return (int)(size / sizeof(gid_t));
}

int clinux_accept(int listener) { return accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC); }

int clinux_open(const char *path, int flags, mode_t mode) { return open(path, flags | O_CLOEXEC, mode); }

int clinux_open_directory(int directory, const char *name) {
    return openat(directory, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

int clinux_unshare_descriptors(void) { return unshare(CLONE_FILES); }

int clinux_wait(void *semaphore, int64_t milliseconds) {
    struct timespec deadline;
    clock_gettime(CLOCK_MONOTONIC, &deadline);
    deadline.tv_sec += milliseconds / 1000;
    deadline.tv_nsec += milliseconds % 1000 * 1000000;
    if (deadline.tv_nsec >= 1000000000) {
        deadline.tv_sec++;
        deadline.tv_nsec -= 1000000000;
    }
    int outcome;
    do outcome = sem_clockwait(semaphore, CLOCK_MONOTONIC, &deadline);
    while (outcome != 0 && errno == EINTR);
    return outcome;
}

void clinux_name_thread(const char *name) { pthread_setname_np(pthread_self(), name); }

int clinux_die_with(pid_t parent) {
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return -1;
    // The call above does not notice a parent that has died before.
    return getppid() == parent ? 0 : -1;
}

int clinux_close_from(int first) { return close_range((unsigned)first, ~0u, 0); }

int clinux_allocate(int descriptor, off_t size) { return fallocate(descriptor, FALLOC_FL_KEEP_SIZE, 0, size); }

int clinux_pipe(int ends[2]) { return pipe2(ends, O_CLOEXEC); }
