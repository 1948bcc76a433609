/* The checksum of record batches (CRC-32C, Castagnoli): by the processor's instruction where there is one, else by a table.
 *
 * One stream of eight bytes at a time: for batches of some kilobytes, where the call from Python would cost more than the sum.
 */
#ifndef ODRADEK_CRC32C_H
#define ODRADEK_CRC32C_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

#define CRC32C_POLYNOMIAL 0x82F63B78u

static uint32_t crc32c_table[256];

static void fill_crc32c_table(void)
{
    for (uint32_t value = 0; value < 256; value++) {
        uint32_t rest = value;
        for (int bit = 0; bit < 8; bit++)
            rest = rest >> 1 ^ (rest & 1 ? CRC32C_POLYNOMIAL : 0);
        crc32c_table[value] = rest;
    }
}

static uint32_t crc32c_by_table(uint32_t sum, const uint8_t *at, size_t length)
{
    for (; length; length--)
        sum = sum >> 8 ^ crc32c_table[(sum ^ *at++) & 0xFF];
    return sum;
}

#if defined(__x86_64__)
#if defined(__clang__)
#define WITH_CRC32C __attribute__((target("sse4.2,crc32"))) /* a feature by itself since clang 14 */
#else
#define WITH_CRC32C __attribute__((target("sse4.2")))
#endif
WITH_CRC32C static uint32_t crc32c_by_instruction(uint32_t sum, const uint8_t *at, size_t length)
{
    uint64_t wide = sum;
    for (; length >= 8; length -= 8, at += 8) {
        uint64_t word;
        memcpy(&word, at, sizeof word);
        wide = __builtin_ia32_crc32di(wide, word);
    }
    for (sum = (uint32_t)wide; length; length--)
        sum = __builtin_ia32_crc32qi(sum, *at++);
    return sum;
}

static int has_crc32c_instruction(void)
{
    unsigned eax, ebx, ecx, edx; /* asked here: not every compiler's library has filled in what its builtin looks at */
    return __get_cpuid(1, &eax, &ebx, &ecx, &edx) && ecx & bit_SSE4_2;
}
#elif defined(__aarch64__)
static uint32_t crc32c_by_instruction(uint32_t sum, const uint8_t *at, size_t length)
{
    for (; length >= 8; length -= 8, at += 8) {
        uint64_t word;
        memcpy(&word, at, sizeof word);
        __asm__(".arch_extension crc\n\tcrc32cx %w0, %w0, %x1" : "+r"(sum) : "r"(word));
    }
    for (; length; length--, at++)
        __asm__(".arch_extension crc\n\tcrc32cb %w0, %w0, %w1" : "+r"(sum) : "r"((uint32_t)*at));
    return sum;
}

static int has_crc32c_instruction(void)
{
#if defined(__linux__)
    return (getauxval(AT_HWCAP) & HWCAP_CRC32) != 0;
#elif defined(__APPLE__)
    return 1; /* all of them have it */
#else
    return 0;
#endif
}
#else
#define crc32c_by_instruction crc32c_by_table
static int has_crc32c_instruction(void)
{
    return 0;
}
#endif

/* Return the checksum; `fill_crc32c_table` comes before. */
static uint32_t crc32c(const uint8_t *at, size_t length)
{
    static int by_instruction = -1;
    if (by_instruction < 0)
        by_instruction = has_crc32c_instruction();
    return ~(by_instruction ? crc32c_by_instruction(UINT32_MAX, at, length) : crc32c_by_table(UINT32_MAX, at, length));
}

#endif
