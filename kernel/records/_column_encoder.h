/* Rows of columns into records, one behind the other, as a batch holds them. */
#ifndef ODRADEK_COLUMN_ENCODER_H
#define ODRADEK_COLUMN_ENCODER_H

#include "_column_memory.h"

#define WRITTEN_MIN 16384

typedef struct {
    Py_buffer offsets, data, validity;
    int64_t first;
    int is_there;
} Source;

typedef struct {
    Source lists; /* without data */
    Source keys, values;
} HeadersSource;

static void release(Py_buffer *view)
{
    if (view->obj != NULL)
        PyBuffer_Release(view);
}

static void release_source(Source *source)
{
    release(&source->offsets);
    release(&source->data);
    release(&source->validity);
}

static int open_optional(PyObject *buffer, Py_buffer *view)
{
    return buffer == Py_None ? 0 : PyObject_GetBuffer(buffer, view, PyBUF_SIMPLE);
}

/* Take (offsets, data, validity, first) or None; `release_source` either way. 0, or -1 with an exception. */
static int open_source(PyObject *given, Source *source)
{
    PyObject *offsets, *data, *validity;
    long long first;
    if (given == Py_None)
        return 0;
    if (!PyArg_ParseTuple(given, "OOOL", &offsets, &data, &validity, &first))
        return -1;
    source->first = first;
    source->is_there = 1;
    if (open_optional(offsets, &source->offsets) < 0 || open_optional(data, &source->data) < 0)
        return -1;
    return open_optional(validity, &source->validity);
}

/* Take (offsets, keys, values, validity, first) or None; likewise. */
static int open_headers(PyObject *given, HeadersSource *source)
{
    PyObject *offsets, *keys, *values, *validity;
    long long first;
    if (given == Py_None)
        return 0;
    if (!PyArg_ParseTuple(given, "OOOOL", &offsets, &keys, &values, &validity, &first))
        return -1;
    source->lists.first = first;
    source->lists.is_there = 1;
    if (open_optional(offsets, &source->lists.offsets) < 0 || open_optional(validity, &source->lists.validity) < 0)
        return -1;
    return open_source(keys, &source->keys) < 0 ? -1 : open_source(values, &source->values);
}

/* Set where a row's value begins and ends, both -1 for null; return 0, or -1 with an exception. */
static inline int find(const Source *source, int64_t row, int64_t limit, int64_t *start, int64_t *end)
{
    int32_t bounds[2];
    *start = *end = -1;
    if (!source->is_there)
        return 0;
    if (row < 0 || source->first < 0 || row > INT64_MAX / 2 || source->first > INT64_MAX / 2)
        return refuse("buffers that are too short for the rows");
    int64_t index = source->first + row;
    if (source->validity.obj != NULL) {
        if (index / 8 >= source->validity.len)
            return refuse("buffers that are too short for the rows");
        if (!(((const uint8_t *)source->validity.buf)[index / 8] >> (index % 8) & 1))
            return 0;
    }
    if (index + 1 >= source->offsets.len / (Py_ssize_t)sizeof(int32_t))
        return refuse("buffers that are too short for the rows");
    memcpy(bounds, (const char *)source->offsets.buf + index * (int64_t)sizeof(int32_t), sizeof bounds);
    if (bounds[0] < 0 || bounds[1] < bounds[0] || bounds[1] > limit)
        return refuse("offsets that do not fit the data");
    *start = bounds[0];
    *end = bounds[1];
    return 0;
}

typedef struct {
    const uint8_t *bytes;
    int64_t length; /* negative for null */
} Value;

static inline int find_value(const Source *source, int64_t row, Value *value)
{
    int64_t start, end;
    if (find(source, row, source->data.len, &start, &end) < 0)
        return -1;
    value->bytes = start < 0 ? NULL : (const uint8_t *)source->data.buf + start;
    value->length = start < 0 ? -1 : end - start;
    return 0;
}

static inline int64_t value_size(const Value *value)
{
    return varint_size(value->length < 0 ? -1 : value->length) + (value->length > 0 ? value->length : 0);
}

static inline uint8_t *write_value(uint8_t *to, const Value *value)
{
    to = write_varint(to, value->length < 0 ? -1 : value->length);
    if (value->length > 0) {
        memcpy(to, value->bytes, (size_t)value->length);
        to += value->length;
    }
    return to;
}

typedef struct {
    int64_t timestamp_delta;
    int64_t offset_delta;
    Value key, value;
    int64_t header, headers_end; /* which of all headers are its own */
    int64_t size;                /* without its length */
} Row;

static int find_header(const HeadersSource *headers, int64_t number, int64_t row, Value *key, Value *value)
{
    if (find_value(&headers->keys, number, key) < 0 || find_value(&headers->values, number, value) < 0)
        return -1;
    if (key->length >= 0)
        return 0;
    PyErr_Format(PyExc_ValueError, "row %lld has a header without a key", (long long)row);
    return -1;
}

/* Find a row's parts and their size, its deltas being set; return 0, or -1 with an exception. */
static int find_row(const Source *keys, const Source *values, const HeadersSource *headers, int64_t number, Row *row)
{
    if (find_value(keys, number, &row->key) < 0 || find_value(values, number, &row->value) < 0 ||
        find(&headers->lists, number, INT32_MAX, &row->header, &row->headers_end) < 0)
        return -1;
    if (row->header < 0)
        row->header = row->headers_end = 0;
    row->size = 1 + varint_size(row->timestamp_delta) + varint_size(row->offset_delta) + value_size(&row->key) +
                value_size(&row->value) + varint_size(row->headers_end - row->header);
    for (int64_t at = row->header; at < row->headers_end; at++) {
        Value key, value;
        if (find_header(headers, at, number, &key, &value) < 0)
            return -1;
        row->size += value_size(&key) + value_size(&value);
    }
    return 0;
}

static void write_row(uint8_t *to, const HeadersSource *headers, const Row *row)
{
    to = write_varint(to, row->size);
    *to++ = 0; /* attributes */
    to = write_varint(to, row->timestamp_delta);
    to = write_varint(to, row->offset_delta);
    to = write_value(to, &row->key);
    to = write_value(to, &row->value);
    to = write_varint(to, row->headers_end - row->header);
    for (int64_t at = row->header; at < row->headers_end; at++) {
        Value key = {NULL, -1}, value = {NULL, -1};
        find_value(&headers->keys, at, &key); /* found before, so found again */
        find_value(&headers->values, at, &value);
        to = write_value(to, &key);
        to = write_value(to, &value);
    }
}

typedef struct {
    int64_t rows_count;
    Source keys, values;
    HeadersSource headers;
    Py_buffer timestamps, rows;
    int64_t position, bytes_max, timestamp_ms;
    int64_t base, greatest; /* timestamps */
} Encoding;

/* Return the row at a position, or -1 with an exception. */
static inline int64_t row_at(const Encoding *encoding, int64_t position)
{
    if (encoding->rows.obj == NULL)
        return position;
    int32_t row;
    memcpy(&row, (const char *)encoding->rows.buf + position * (int64_t)sizeof row, sizeof row);
    if (row >= 0 && row < encoding->rows_count)
        return row;
    PyErr_Format(PyExc_ValueError, "there is no row %d", (int)row);
    return -1;
}

/* Set a row's timestamp in milliseconds; return 0, or -1 with an exception. */
static inline int timestamp_at(const Encoding *encoding, int64_t row, int64_t *timestamp)
{
    *timestamp = encoding->timestamp_ms;
    if (encoding->timestamps.obj == NULL)
        return 0;
    if (row >= encoding->timestamps.len / (Py_ssize_t)sizeof(int64_t))
        return refuse("buffers that are too short for the rows");
    memcpy(timestamp, (const char *)encoding->timestamps.buf + row * (int64_t)sizeof(int64_t), sizeof(int64_t));
    int is_before = *timestamp % MICROSECONDS < 0;
    *timestamp = *timestamp / MICROSECONDS - is_before; /* towards the past */
    return 0;
}

/* Write rows into a bytearray that has room for a header already; return 0, or -1 with an exception. */
static int write_rows(Encoding *encoding, PyObject *written, Py_ssize_t *used)
{
    int64_t start = encoding->position;
    int64_t count = encoding->rows.obj == NULL ? encoding->rows_count : encoding->rows.len / (int64_t)sizeof(int32_t);
    uint8_t *bytes = (uint8_t *)PyByteArray_AsString(written);
    Py_ssize_t room = PyByteArray_Size(written);
    for (; encoding->position < count; encoding->position++) {
        int64_t timestamp, number = row_at(encoding, encoding->position);
        if (number < 0 || timestamp_at(encoding, number, &timestamp) < 0)
            return -1;
        if (encoding->position == start)
            encoding->base = encoding->greatest = timestamp;
        Row row = {.offset_delta = encoding->position - start};
        if (__builtin_sub_overflow(timestamp, encoding->base, &row.timestamp_delta))
            return refuse("timestamps that are too far apart");
        if (find_row(&encoding->keys, &encoding->values, &encoding->headers, number, &row) < 0)
            return -1;
        int64_t size = varint_size(row.size) + row.size;
        if (size > (encoding->position > start ? encoding->bytes_max : INT32_MAX) - *used)
            break;
        if (size > room - *used) {
            room = (Py_ssize_t)(2 * (*used + size));
            if (PyByteArray_Resize(written, room) < 0)
                return -1;
            bytes = (uint8_t *)PyByteArray_AsString(written);
        }
        write_row(bytes + *used, &encoding->headers, &row);
        *used += (Py_ssize_t)size;
        if (timestamp > encoding->greatest)
            encoding->greatest = timestamp;
    }
    return encoding->position > start ? 0 : refuse("a record that is too large for a batch, or no row at all");
}

static int open_encoding(PyObject *const *args, Encoding *encoding)
{
    int64_t *numbers[4] = {&encoding->rows_count, &encoding->position, &encoding->bytes_max, &encoding->timestamp_ms};
    static const int places[4] = {0, 6, 7, 8};
    for (int index = 0; index < 4; index++)
        if (take_number(args[places[index]], numbers[index]) < 0)
            return -1;
    if (encoding->position < 0)
        return refuse("there is no row before the first");
    if (open_source(args[1], &encoding->keys) < 0 || open_source(args[2], &encoding->values) < 0 ||
        open_optional(args[3], &encoding->timestamps) < 0 || open_headers(args[4], &encoding->headers) < 0)
        return -1;
    return open_optional(args[5], &encoding->rows);
}

static PyObject *encode_rows(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    (void)module;
    if (nargs != 9) {
        PyErr_SetString(PyExc_TypeError, "encode_rows takes nine arguments");
        return NULL;
    }
    PyObject *result = NULL, *written = NULL;
    Encoding encoding = {0};
    if (open_encoding(args, &encoding) == 0)
        written = PyByteArray_FromStringAndSize(NULL, WRITTEN_MIN);
    if (written != NULL) {
        Py_ssize_t used = HEADER_SIZE;
        memset(PyByteArray_AsString(written), 0, HEADER_SIZE);
        if (write_rows(&encoding, written, &used) == 0 && PyByteArray_Resize(written, used) == 0)
            result = Py_BuildValue("(OLLL)", written, (long long)encoding.position, (long long)encoding.base,
                                   (long long)encoding.greatest);
        Py_DECREF(written);
    }
    release_source(&encoding.keys);
    release_source(&encoding.values);
    release_source(&encoding.headers.lists);
    release_source(&encoding.headers.keys);
    release_source(&encoding.headers.values);
    release(&encoding.timestamps);
    release(&encoding.rows);
    return result;
}

#endif
