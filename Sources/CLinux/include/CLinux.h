#ifndef CRUDD_CLINUX_H
#define CRUDD_CLINUX_H
// Linux calls and constants that Swift's Glibc module lacks.

#include <malloc.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/types.h>
#include <sys/un.h>
#include <sys/xattr.h>

/// The peer of a connected Unix socket as the kernel knows it (SO_PEERCRED). 0, or -1 with errno.
int clinux_peer_credentials(int descriptor, pid_t *pid, uid_t *uid, gid_t *gid);

/// The supplementary groups of the peer (SO_PEERGROUPS). Writes at most `capacity` of them and returns how many there
/// are, or -1 with errno (ERANGE: more than `capacity`).
int clinux_peer_groups(int descriptor, gid_t *groups, int capacity);

/// accept4(2) with SOCK_NONBLOCK | SOCK_CLOEXEC.
int clinux_accept(int listener);

/// A variadic open(2) for Swift: `flags | O_CLOEXEC`, `mode` used with O_CREAT.
int clinux_open(const char *path, int flags, mode_t mode);

/// openat(2) of a directory to look at it and to look up names in it, for which it need not be readable: O_PATH. A
/// symbolic link is not followed.
int clinux_open_directory(int directory, const char *name);

/// Allocates the first `size` bytes of a file without changing its size (fallocate(2), FALLOC_FL_KEEP_SIZE). 0, or -1
/// with errno.
int clinux_allocate(int descriptor, off_t size);

/// pipe2(2) with O_CLOEXEC: the reading end first.
int clinux_pipe(int ends[2]);

/// Gives the calling thread a descriptor table of its own (unshare(2), CLONE_FILES). 0, or -1 with errno.
int clinux_unshare_descriptors(void);

/// Waits for a `sem_t` at most so long, by CLOCK_MONOTONIC. 0, or -1 with errno (ETIMEDOUT: it was not posted in time).
int clinux_wait(void *semaphore, int64_t milliseconds);

/// Names the calling thread for `ps -L` and debuggers; at most 15 bytes.
void clinux_name_thread(const char *name);

/// Makes the kernel kill this process when the thread of `parent` that started it ends (prctl(2), PR_SET_PDEATHSIG).
/// 0, or -1 if that fails or `parent` has ended already.
int clinux_die_with(pid_t parent);

/// Closes every descriptor from `first` on (close_range(2)). 0, or -1 with errno.
int clinux_close_from(int first);

/// Continues a CRC-32C (Castagnoli, as in iSCSI: RFC 3720, appendix B.4), which begins with 0, with further bytes. It
/// uses the processor's instruction where there is one.
uint32_t clinux_crc32c(uint32_t crc, const void *bytes, size_t size);

#endif
