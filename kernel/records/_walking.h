/* What the compiled twins share: a reader that never leaves its bytes, and Kafka's varints.
 *
 * Everything read is checked against the end of the buffer first; lengths are compared with what is left, never added to a
 * pointer before.
 */
#ifndef ODRADEK_WALKING_H
#define ODRADEK_WALKING_H

#include <stdint.h>

#define VARINT_BYTES_MAX 5
#define VARLONG_BYTES_MAX 10

/* A larger payload is walked without the interpreter's lock: it takes long enough for others to get on meanwhile, and for
 * having to wait for the lock again to be worth it. */
#define LOCKED_BYTES_MAX (1 << 20)

/* Of a batch's header; see batch.py. */
#define HEADER_SIZE 61
#define LOG_OVERHEAD 12
#define MAGIC 2
#define COMPRESSION_MASK 0x07
#define TIMESTAMP_TYPE_FLAG 0x08
#define TRANSACTIONAL_FLAG 0x10
#define CONTROL_FLAG 0x20

/* What is called for every record is inlined by every compiler, and what is called seldom by none. */
#define OFTEN static inline __attribute__((always_inline))
#define SELDOM static __attribute__((noinline, cold))

typedef struct {
    const uint8_t *at;
    const uint8_t *end;
    const char *error; /* NULL while all is well */
} Reader;

SELDOM int64_t read_long_zigzag(Reader *reader, int bytes_max)
{
    uint64_t result = 0;
    for (int index = 0; index < bytes_max; index++) {
        if (reader->at >= reader->end) {
            reader->error = "record cut off";
            return 0;
        }
        uint8_t byte = *reader->at++;
        result |= (uint64_t)(byte & 0x7F) << (7 * index);
        if (byte < 0x80) {
            if (bytes_max == VARINT_BYTES_MAX)
                result &= UINT32_MAX;
            return (int64_t)(result >> 1) ^ -(int64_t)(result & 1);
        }
    }
    reader->error = "varint too long";
    return 0;
}

/* Return the zigzag varint at the reader, which has at most bytes_max bytes; surplus bits are dropped as Kafka drops them. */
OFTEN int64_t read_zigzag(Reader *reader, int bytes_max)
{
    const uint8_t *at = reader->at;
    if (at < reader->end && *at < 0x80) { /* most are one byte, and lengths from 64 on two */
        reader->at = at + 1;
        return (int64_t)(*at >> 1) ^ -(int64_t)(*at & 1);
    }
    if (reader->end - at >= 2 && at[1] < 0x80) {
        uint32_t both = (uint32_t)at[1] << 7 | (*at & 0x7F);
        reader->at = at + 2;
        return (int64_t)(both >> 1) ^ -(int64_t)(both & 1);
    }
    return read_long_zigzag(reader, bytes_max);
}

/* Step over nullable bytes; return where they begin and set *length, negative for null. */
OFTEN const uint8_t *read_bytes(Reader *reader, int64_t *length)
{
    *length = read_zigzag(reader, VARINT_BYTES_MAX);
    const uint8_t *start = reader->at;
    if (!reader->error && *length > reader->end - reader->at)
        reader->error = "record cut off";
    if (!reader->error && *length > 0)
        reader->at += *length;
    return start;
}

static inline uint64_t to_zigzag(int64_t number)
{
    return (uint64_t)number << 1 ^ (uint64_t)(number >> 63);
}

static inline int varint_size(int64_t number)
{
    int size = 1;
    for (uint64_t rest = to_zigzag(number) >> 7; rest; rest >>= 7)
        size++;
    return size;
}

static inline uint8_t *write_varint(uint8_t *to, int64_t number)
{
    uint64_t rest = to_zigzag(number);
    for (; rest > 0x7F; rest >>= 7)
        *to++ = (uint8_t)(rest | 0x80);
    *to++ = (uint8_t)rest;
    return to;
}

static inline int64_t read_big_endian(const uint8_t *at, int size)
{
    uint64_t value = at[0] & 0x80 ? UINT64_MAX : 0;
    for (int index = 0; index < size; index++)
        value = value << 8 | at[index];
    return (int64_t)value;
}

#endif
