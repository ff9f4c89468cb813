#include "CLinux.h"

#include <string.h>

/// Half a byte after the other: for processors without an instruction for it.
static uint32_t crc32c_portable(uint32_t crc, const uint8_t *bytes, size_t size) {
    static const uint32_t table[16] = {
        0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3, 0x61c69362, 0x7198540d,
        0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9, 0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
    };
    while (size--) {
        crc ^= *bytes++;
        crc = table[crc & 15] ^ crc >> 4;
        crc = table[crc & 15] ^ crc >> 4;
    }
    return crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2")))
static uint32_t crc32c_instruction(uint32_t crc, const uint8_t *bytes, size_t size) {
    uint64_t wide = crc;
    for (; size >= 8; size -= 8, bytes += 8) {
        uint64_t word;
        memcpy(&word, bytes, 8);
        wide = __builtin_ia32_crc32di(wide, word);
    }
    crc = (uint32_t)wide;
    while (size--) crc = __builtin_ia32_crc32qi(crc, *bytes++);
    return crc;
}

static int has_crc32c_instruction(void) { return __builtin_cpu_supports("sse4.2"); }
#elif defined(__aarch64__)
#include <sys/auxv.h>

__attribute__((target("crc")))
static uint32_t crc32c_instruction(uint32_t crc, const uint8_t *bytes, size_t size) {
    for (; size >= 8; size -= 8, bytes += 8) {
        uint64_t word;
        memcpy(&word, bytes, 8);
        crc = __builtin_arm_crc32cd(crc, word);
    }
    while (size--) crc = __builtin_arm_crc32cb(crc, *bytes++);
    return crc;
}

// HWCAP_CRC32
static int has_crc32c_instruction(void) { return (getauxval(AT_HWCAP) & 1 << 7) != 0; }
#else
static int has_crc32c_instruction(void) { return 0; }
#define crc32c_instruction crc32c_portable
#endif

uint32_t clinux_crc32c(uint32_t crc, const void *bytes, size_t size) {
    return ~(has_crc32c_instruction() ? crc32c_instruction : crc32c_portable)(~crc, bytes, size);
}
