// How a test controls scripted.c, and how names in a request do.

#include <crudd_plugin.h>
#include <fcntl.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#ifndef CAPABILITIES
#define CAPABILITIES 0
#endif

/// The function table, and functions that the host does not know.
struct table {
    crudd_plugin plugin;
    void (*unknown[4])(void);
};

#if defined(SHORT_TABLE)
#define TABLE_SIZE offsetof(crudd_plugin, end_snapshot)
#elif defined(LONG_TABLE)
#define TABLE_SIZE sizeof(struct table)
#else
#define TABLE_SIZE sizeof(crudd_plugin)
#endif

static int can(uint64_t capability) { return (CAPABILITIES & capability) != 0; }

// MARK: What a test sees

enum {
    OPENS, CLOSES, READERS, CREATIONS, READS, WRITES, MUTATIONS, SNAPSHOTS_ENDED, IDLES, VIOLATIONS,
    SCANS, COUNTS, KEYS_SET, INTERRUPTS, COLLECTIONS_OPENED, TRIMS, READS_TO_WRITE,
    ITEMS_READ,
    COUNTERS
};
enum { WRITE_BEGAN, IDLED, EVENTS };

static atomic_long counters[COUNTERS];
static atomic_ulong version = 1;
static sem_t events[EVENTS];
static sem_t gate;
static const crudd_host *last_host;

__attribute__((constructor)) static void prepare(void) {
    for (int event = 0; event < EVENTS; event++) sem_init(&events[event], 0, 0);
    sem_init(&gate, 0, 0);
}

long scripted_counter(int counter) { return counters[counter]; }

/// Waits until an event has happened once more than it was waited for; 0 if it does not in time.
int scripted_await(int event, int seconds) {
    struct timespec deadline;
    clock_gettime(CLOCK_REALTIME, &deadline);
    deadline.tv_sec += seconds;
    return sem_timedwait(&events[event], &deadline) == 0;
}

/// Lets so many writes pass the gate.
void scripted_pass(int writes) {
    for (int write = 0; write < writes; write++) sem_post(&gate);
}

/// Changes data_version, as if somebody else had written.
void scripted_change_version(void) { version++; }

static crudd_bytes literal(const char *text) { return (crudd_bytes){(const uint8_t *)text, strlen(text)}; }

/// Reports to the host of the last backend that its storage was lost, or is back.
void scripted_state(int is_up) { last_host->state(last_host->context, is_up, literal("scripted")); }

// MARK: The contract

static void require(int condition) { counters[VIOLATIONS] += !condition; }

/// Begins a call on something that allows one at a time.
static void enter(atomic_int *calls) {
    require(atomic_fetch_add(calls, 1) == 0);
    sched_yield();
}

static void leave(atomic_int *calls) { atomic_fetch_sub(calls, 1); }

static void log_line(const crudd_host *host, const char *line) {
    host->log(host->context, CRUDD_LOG_WARNING, literal(line));
}

static long option(crudd_bytes options, const char *name) {
    text text = copied(options);
    char key[64];
    snprintf(key, sizeof key, "\"%s\":", name);
    char *found = strstr((char *)text.data, key);
    long value = found ? strtol(found + strlen(key), NULL, 10) : 0;
    free(text.data);
    return value;
}

static int begins(crudd_bytes name, const char *prefix) {
    return name.size > strlen(prefix) && memcmp(name.data, prefix, strlen(prefix)) == 0;
}

/// The number after a prefix, which a name asks for; 0 for every other name.
static int asked(crudd_bytes name, const char *prefix) {
    if (!begins(name, prefix)) return 0;
    size_t size = strlen(prefix);
    char digits[8] = {0};
    memcpy(digits, name.data + size, name.size - size < 7 ? name.size - size : 7);
    return atoi(digits);
}

/// Takes as long as a name asks for.
static void linger(const crudd_host *host, crudd_bytes name) {
    int total = asked(name, "progress:");
    for (int done = 0; done < total; done += 20) {
        host->progress(host->context, done, total);
        usleep(20000);
    }
    usleep(1000 * asked(name, "slow:"));
}

/// Waits where an id asks for it.
static void wait_at(crudd_bytes id) {
    if (!begins(id, "wait:")) return;
    text path = copied(id);
    int fifo = open((char *)path.data + strlen("wait:"), O_RDONLY | O_CLOEXEC);
    char byte;
    while (read(fifo, &byte, 1) > 0) {}
    close(fifo);
    free(path.data);
}

static crudd_status fail(crudd_status status, crudd_failure *failure) {
    require(failure->struct_size >= sizeof *failure && !failure->message[0] && !failure->pointer[0]);
    snprintf(failure->message, sizeof failure->message, "private reason %d", status);
    if (status == CRUDD_INVALID_OPTIONS) snprintf(failure->pointer, sizeof failure->pointer, "/open_status");
    return status;
}
