/* Writes a batch's records anew with offsets 0, 1, 2, ... and timestamps that count from another one, a piece at a time.
 *
 * The twin is in renumbering.py. A record is written as our own encoder writes it: varints as short as they can be, null
 * as -1, no attributes. So it grows by the deltas and its length at most.
 */
#ifndef ODRADEK_RENUMBERING_H
#define ODRADEK_RENUMBERING_H

#include <stdlib.h>

#include "_finding.h"

#define RECORD_GROWTH_MAX (VARINT_BYTES_MAX + 1 + VARLONG_BYTES_MAX + VARINT_BYTES_MAX)

OFTEN uint8_t *write_nullable(uint8_t *to, const uint8_t *start, int64_t length)
{
    to = write_varint(to, length < 0 ? -1 : length);
    if (length > 0) {
        memcpy(to, start, (size_t)length);
        to += length;
    }
    return to;
}

SELDOM uint8_t *write_headers(uint8_t *to, Reader *reader)
{
    int64_t count = read_zigzag(reader, VARINT_BYTES_MAX);
    if (!reader->error && (count < 0 || count > reader->end - reader->at))
        reader->error = "impossible number of record headers";
    if (reader->error)
        return to;
    to = write_varint(to, count);
    for (int64_t number = 0; number < 2 * count && !reader->error; number++) {
        int64_t length;
        const uint8_t *start = read_bytes(reader, &length);
        if (!reader->error && length < 0 && number % 2 == 0)
            reader->error = "null key of a record header";
        if (!reader->error)
            to = write_nullable(to, start, length);
    }
    return to;
}

typedef struct {
    int64_t timestamp_shift;
    int is_stamped; /* all timestamps become the first one */
    int64_t index;
} Renumbering;

/* Write one record, for which there is room, and return where it ends. */
static uint8_t *renumber_record(uint8_t *to, Reader *payload, const Walked *record, const Renumbering *how)
{
    int64_t delta = 0;
    if (!how->is_stamped && __builtin_sub_overflow(record->timestamp_delta, how->timestamp_shift, &delta)) {
        payload->error = "timestamps too far apart";
        return to;
    }
    uint8_t *const body = to + VARINT_BYTES_MAX; /* its length, which comes before it, is known when it is written */
    uint8_t *end = body;
    *end++ = 0;
    end = write_varint(write_varint(end, delta), how->index);
    end = write_nullable(end, record->key, record->key_length);
    end = write_nullable(end, record->value, record->value_length);
    Reader headers = {record->headers, record->end, NULL};
    end = write_headers(end, &headers);
    if (!headers.error && headers.at != headers.end)
        headers.error = "record of another length than it tells";
    payload->error = headers.error;
    to = write_varint(to, end - body);
    memmove(to, body, (size_t)(end - body));
    return to + (end - body);
}

/* Write records from the reader on until none is left or the next does not fit; return how many bytes. */
static size_t renumber_piece(Reader *payload, Renumbering *how, uint8_t **out, size_t capacity)
{
    size_t size = 0;
    Walked record = {0};
    while (payload->at < payload->end) {
        const uint8_t *begin = payload->at;
        walk_record(payload, &record);
        if (payload->error)
            break;
        size_t needed = (size_t)(payload->at - begin) + RECORD_GROWTH_MAX + VARINT_BYTES_MAX;
        if (size + needed > capacity) {
            if (size > 0) {
                payload->at = begin;
                break;
            }
            uint8_t *larger = realloc(*out, needed);
            if (larger == NULL) {
                payload->error = "no memory for a record";
                break;
            }
            *out = larger;
            capacity = needed;
        }
        size = (size_t)(renumber_record(*out + size, payload, &record, how) - *out);
        if (payload->error)
            break;
        how->index++;
    }
    return size;
}

static PyObject *renumber_records(PyObject *module, PyObject *args)
{
    (void)module;
    Py_buffer view;
    Py_ssize_t position, bytes_max;
    long long index, timestamp_shift;
    int is_stamped;
    if (!PyArg_ParseTuple(args, "y*nLLpn", &view, &position, &index, &timestamp_shift, &is_stamped, &bytes_max))
        return NULL;
    PyObject *result = NULL;
    int is_sound = position >= 0 && position <= view.len && bytes_max > 0;
    uint8_t *out = is_sound ? malloc((size_t)bytes_max) : NULL;
    if (!is_sound) {
        PyErr_SetString(PyExc_AssertionError, "a position outside the payload, or no room");
    } else if (out == NULL) {
        PyErr_NoMemory();
    } else {
        const uint8_t *start = view.buf;
        Reader payload = {start + position, start + view.len, NULL};
        Renumbering how = {timestamp_shift, is_stamped, index};
        PyThreadState *state = view.len > LOCKED_BYTES_MAX ? PyEval_SaveThread() : NULL;
        size_t size = renumber_piece(&payload, &how, &out, (size_t)bytes_max);
        if (state != NULL)
            PyEval_RestoreThread(state);
        if (payload.error)
            PyErr_SetString(PyExc_ValueError, payload.error);
        else
            result = Py_BuildValue("(y#nL)", (const char *)out, (Py_ssize_t)size, (Py_ssize_t)(payload.at - start),
                                   (long long)how.index);
    }
    free(out);
    PyBuffer_Release(&view);
    return result;
}

#endif
