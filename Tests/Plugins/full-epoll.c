// A kernel that watches no more descriptors, to be preloaded (LD_PRELOAD) into a daemon: as long as there is a file
// $FULL_EPOLL, adding one fails as it does where fs.epoll.max_user_watches is reached.

#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

int epoll_ctl(int poll, int operation, int descriptor, struct epoll_event *event) {
    const char *path = getenv("FULL_EPOLL");
    if (operation == EPOLL_CTL_ADD && path && access(path, F_OK) == 0) {
        errno = ENOSPC;
        return -1;
    }
    return syscall(SYS_epoll_ctl, poll, operation, descriptor, event);
}
