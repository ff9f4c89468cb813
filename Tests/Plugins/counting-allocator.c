// Counts heap allocations, to be preloaded (LD_PRELOAD) into a daemon. $ALLOCATIONS names a file of eight bytes that
// the number of allocations of the main thread stands in, in the machine's order: of the thread that runs the first
// event loop. What other threads do meanwhile, such as the maintenance of a database, does not count.

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

static unsigned long unused;
static volatile unsigned long *count = &unused;
static __thread char is_main_thread __attribute__((tls_model("initial-exec")));

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("ALLOCATIONS");
    int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (file < 0) return;
    void *memory = mmap(NULL, sizeof *count, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (memory == MAP_FAILED) abort();
    count = memory;
    is_main_thread = 1;
}

static void note(void) {
    if (is_main_thread) *count += 1;
}

void *malloc(size_t size) { note(); return __libc_malloc(size); }
void *calloc(size_t number, size_t size) { note(); return __libc_calloc(number, size); }
void *realloc(void *memory, size_t size) { note(); return __libc_realloc(memory, size); }
void *memalign(size_t alignment, size_t size) { note(); return __libc_memalign(alignment, size); }
void *aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }

int posix_memalign(void **memory, size_t alignment, size_t size) {
    *memory = memalign(alignment, size);
    return *memory ? 0 : ENOMEM;
}
