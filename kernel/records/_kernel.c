/* The compiled twins of some functions: scan.py's walk over the records of one batch, plain.py's look at a whole batch,
 * record.py's decoding and encoding of records; in headers, those of finding.py and renumbering.py. The twins give the same
 * answers: tests hold them together.
 *
 * Optional: without a compiler the package installs all the same and Python does the work.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

#include "_crc32c.h"
#include "_finding.h"
#include "_renumbering.h"
#include "_walking.h"

/* Step over nullable bytes and return their length, negative for null. */
OFTEN int64_t skip_bytes(Reader *reader)
{
    int64_t length;
    read_bytes(reader, &length);
    return length;
}

static void skip_headers(Reader *reader)
{
    int64_t count = read_zigzag(reader, VARINT_BYTES_MAX);
    if (reader->error)
        return;
    if (count < 0 || count > reader->end - reader->at) {
        reader->error = "impossible number of record headers";
        return;
    }
    for (; count > 0 && !reader->error; count--) {
        if (skip_bytes(reader) < 0 && !reader->error)
            reader->error = "null key of a record header";
        if (!reader->error)
            skip_bytes(reader);
    }
}

typedef struct {
    int64_t timestamp_delta_min;
    int64_t timestamp_delta_max;
    int has_offset_gaps;
} Scan;

/* Walk one record; return 1 if its key is null, 0 if not, -1 with reader->error set if it is malformed. */
OFTEN int scan_record(Reader *reader, Py_ssize_t index, Scan *scan)
{
    int64_t length = read_zigzag(reader, VARINT_BYTES_MAX);
    if (reader->error)
        return -1;
    const uint8_t *start = reader->at;
    if (start >= reader->end) {
        reader->error = "record cut off";
        return -1;
    }
    reader->at++; /* attributes: none are defined, any are taken */
    int64_t timestamp_delta = read_zigzag(reader, VARLONG_BYTES_MAX);
    int64_t offset_delta = reader->error ? 0 : read_zigzag(reader, VARINT_BYTES_MAX);
    int64_t key_length = reader->error ? 0 : skip_bytes(reader);
    if (!reader->error)
        skip_bytes(reader);
    if (!reader->error)
        skip_headers(reader);
    if (!reader->error && reader->at - start != length)
        reader->error = "record of another length than it tells";
    if (reader->error)
        return -1;
    if (index == 0 || timestamp_delta < scan->timestamp_delta_min)
        scan->timestamp_delta_min = timestamp_delta;
    if (index == 0 || timestamp_delta > scan->timestamp_delta_max)
        scan->timestamp_delta_max = timestamp_delta;
    if (offset_delta != index)
        scan->has_offset_gaps = 1;
    return key_length < 0;
}

/* Fill scan; return how many keys are null, with reader->error set if something is malformed. */
static int64_t scan_all(Reader *reader, Py_ssize_t count, Scan *scan)
{
    int64_t null_keys_count = 0;
    for (Py_ssize_t index = 0; index < count; index++) {
        int is_null = scan_record(reader, index, scan);
        if (is_null < 0)
            return null_keys_count;
        null_keys_count += is_null;
    }
    if (reader->at != reader->end)
        reader->error = "bytes after the records";
    return null_keys_count;
}

static PyObject *scan_records(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    (void)module;
    if (nargs != 2) {
        PyErr_SetString(PyExc_TypeError, "scan_records takes payload and count");
        return NULL;
    }
    Py_ssize_t count = PyLong_AsSsize_t(args[1]);
    if (count == -1 && PyErr_Occurred())
        return NULL;
    Py_buffer view;
    if (PyObject_GetBuffer(args[0], &view, PyBUF_SIMPLE) < 0)
        return NULL;
    Reader reader = {view.buf, (const uint8_t *)view.buf + view.len, NULL};
    Scan scan = {0, 0, 0};
    PyThreadState *state = view.len > LOCKED_BYTES_MAX ? PyEval_SaveThread() : NULL;
    int64_t null_keys_count = scan_all(&reader, count, &scan);
    if (state != NULL)
        PyEval_RestoreThread(state);
    PyBuffer_Release(&view);
    if (reader.error) {
        PyErr_SetString(PyExc_ValueError, reader.error);
        return NULL;
    }
    return Py_BuildValue("(LLLO)", (long long)scan.timestamp_delta_min, (long long)scan.timestamp_delta_max,
                         (long long)null_keys_count, scan.has_offset_gaps ? Py_True : Py_False);
}

/* Whatever needs a look that this function does not have. */
#define ODD_ATTRIBUTES (COMPRESSION_MASK | TIMESTAMP_TYPE_FLAG | CONTROL_FLAG)

/* Return whether every record's timestamp lies within the topic's bounds, and the largest is the header's. */
static int has_plain_timestamps(const Scan *scan, int64_t base, int64_t max, int64_t now_ms, int64_t before, int64_t after)
{
    int64_t least, greatest, earliest, latest;
    if (__builtin_add_overflow(base, scan->timestamp_delta_min, &least) ||
        __builtin_add_overflow(base, scan->timestamp_delta_max, &greatest))
        return 0;
    if (__builtin_sub_overflow(now_ms, before, &earliest))
        earliest = INT64_MIN;
    if (__builtin_add_overflow(now_ms, after, &latest))
        latest = INT64_MAX;
    return earliest <= least && greatest <= latest && max == (greatest < -1 ? -1 : greatest);
}

/* Up to this size the checksum is looked at here; beyond it crc32c's three streams at a time are worth their call. */
#define CHECKED_BYTES_MAX 4096
#define ATTRIBUTES_POSITION 21 /* from where on the checksum counts */

/* Fill fields with the header and return 1 if the bytes are a plain batch, 0 if they are not. */
static int read_plain(const Py_buffer *view, const int64_t limits[3], int is_compacted, int64_t fields[13])
{
    static const int sizes[13] = {8, 4, 4, 1, 4, 2, 4, 8, 8, 8, 2, 4, 4};
    const uint8_t *at = view->buf;
    const uint8_t *end = at + view->len;
    if (view->len < HEADER_SIZE)
        return 0;
    for (int index = 0; index < 13; at += sizes[index++])
        fields[index] = read_big_endian(at, sizes[index]);
    fields[1] += LOG_OVERHEAD;
    fields[4] &= UINT32_MAX;
    int64_t count = fields[12];
    if (fields[0] != 0 || fields[1] != view->len || fields[3] != MAGIC || fields[5] & ODD_ATTRIBUTES || count <= 0 ||
        count != fields[6] + 1 || (fields[11] < 0 && fields[9] >= 0))
        return 0;
    if (view->len <= CHECKED_BYTES_MAX) {
        const uint8_t *covered = (const uint8_t *)view->buf + ATTRIBUTES_POSITION;
        if (crc32c(covered, (size_t)(end - covered)) != fields[4])
            return 0;
    }
    Reader reader = {at, end, NULL};
    Scan scan = {0, 0, 0};
    for (int64_t index = 0; index < count; index++) {
        int is_null = scan_record(&reader, (Py_ssize_t)index, &scan);
        if (is_null < 0 || (is_null && is_compacted))
            return 0;
    }
    return reader.at == end && has_plain_timestamps(&scan, fields[7], fields[8], limits[0], limits[1], limits[2]);
}

static PyObject *read_plain_batch(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    (void)module;
    if (nargs != 5) {
        PyErr_SetString(PyExc_TypeError, "read_plain_batch takes records, now_ms, before_max_ms, after_max_ms, is_compacted");
        return NULL;
    }
    int64_t limits[3];
    for (int index = 0; index < 3; index++) {
        limits[index] = PyLong_AsLongLong(args[index + 1]);
        if (limits[index] == -1 && PyErr_Occurred())
            return NULL;
    }
    Py_buffer view;
    if (PyObject_GetBuffer(args[0], &view, PyBUF_SIMPLE) < 0)
        return NULL;
    int64_t fields[13];
    int is_plain = read_plain(&view, limits, args[4] == Py_True, fields);
    PyBuffer_Release(&view);
    if (!is_plain)
        Py_RETURN_NONE;
    PyObject *header = PyTuple_New(13);
    for (int index = 0; header != NULL && index < 13; index++) {
        PyObject *number = PyLong_FromLongLong(fields[index]);
        if (number == NULL)
            Py_CLEAR(header);
        else
            PyTuple_SetItem(header, index, number);
    }
    return header;
}

/* -------------------------------------------------------------------------------------------------- records as objects */

/* Return the sum of two numbers, which need not be an int64. */
static PyObject *sum_of(int64_t left, int64_t right)
{
    int64_t sum;
    if (!__builtin_add_overflow(left, right, &sum))
        return PyLong_FromLongLong(sum);
    PyObject *first = PyLong_FromLongLong(left), *second = PyLong_FromLongLong(right), *result = NULL;
    if (first != NULL && second != NULL)
        result = PyNumber_Add(first, second);
    Py_XDECREF(first);
    Py_XDECREF(second);
    return result;
}

/* Return nullable bytes as an object; NULL with an exception, or with reader->error set. */
static PyObject *bytes_of(Reader *reader)
{
    int64_t length;
    const uint8_t *start = read_bytes(reader, &length);
    if (reader->error)
        return NULL;
    return length < 0 ? Py_NewRef(Py_None) : PyBytes_FromStringAndSize((const char *)start, (Py_ssize_t)length);
}

static PyObject *header_of(Reader *reader)
{
    int64_t length;
    const uint8_t *name = read_bytes(reader, &length);
    if (!reader->error && length < 0)
        reader->error = "null key of a record header";
    PyObject *value = reader->error ? NULL : bytes_of(reader);
    PyObject *text = value == NULL ? NULL : PyUnicode_DecodeUTF8((const char *)name, (Py_ssize_t)length, "surrogateescape");
    PyObject *header = text == NULL ? NULL : PyTuple_Pack(2, text, value);
    Py_XDECREF(text);
    Py_XDECREF(value);
    return header;
}

static PyObject *headers_of(Reader *reader)
{
    int64_t count = read_zigzag(reader, VARINT_BYTES_MAX);
    if (!reader->error && (count < 0 || count > reader->end - reader->at))
        reader->error = "impossible number of record headers";
    if (reader->error)
        return NULL;
    if (count == 0)
        return PyTuple_New(0);
    PyObject *list = PyList_New(0); /* it grows with what is there, not with what a damaged count says */
    for (int64_t index = 0; list != NULL && index < count; index++) {
        PyObject *header = header_of(reader);
        if (header == NULL || PyList_Append(list, header) < 0)
            Py_CLEAR(list);
        Py_XDECREF(header);
    }
    PyObject *headers = list == NULL ? NULL : PyList_AsTuple(list);
    Py_XDECREF(list);
    return headers;
}

typedef struct {
    PyTypeObject *type; /* a tuple of five */
    int64_t base_offset, base_timestamp;
    PyObject *append_time; /* None where the records' own timestamps count */
} Making;

/* Give a new tuple its next item; return whether there is one. */
static inline int put(PyObject *tuple, Py_ssize_t index, PyObject *item)
{
    return item != NULL && PyTuple_SetItem(tuple, index, item) == 0;
}

/* Return the next record; NULL with an exception, or with reader->error set. */
static PyObject *make_record(Reader *payload, const Making *making)
{
    int64_t length = read_zigzag(payload, VARINT_BYTES_MAX);
    if (!payload->error && (length <= 0 || length > payload->end - payload->at))
        payload->error = "record cut off";
    if (payload->error)
        return NULL;
    Reader reader = {payload->at + 1, payload->at + length, NULL}; /* attributes: none are defined, any are taken */
    int64_t timestamp_delta = read_zigzag(&reader, VARLONG_BYTES_MAX);
    int64_t offset_delta = reader.error ? 0 : read_zigzag(&reader, VARINT_BYTES_MAX);
    PyObject *record = reader.error ? NULL : PyType_GenericAlloc(making->type, 5);
    if (record != NULL) {
        PyObject *by_broker = making->append_time;
        int is_whole = put(record, 0, sum_of(making->base_offset, offset_delta)) &&
                       put(record, 1, by_broker == Py_None ? sum_of(making->base_timestamp, timestamp_delta) : Py_NewRef(by_broker)) &&
                       put(record, 2, bytes_of(&reader)) && put(record, 3, bytes_of(&reader)) &&
                       put(record, 4, headers_of(&reader));
        if (is_whole && reader.at != reader.end)
            reader.error = "record of another length than it tells";
        if (!is_whole || reader.error)
            Py_CLEAR(record);
    }
    payload->error = reader.error;
    payload->at = reader.end;
    return record;
}

static PyObject *decode_records(PyObject *module, PyObject *args)
{
    (void)module;
    Making making;
    Py_buffer view;
    PyObject *type;
    Py_ssize_t position, count;
    long long base_offset, base_timestamp;
    if (!PyArg_ParseTuple(args, "O!y*nnLLO", &PyType_Type, &type, &view, &position, &count, &base_offset, &base_timestamp,
                          &making.append_time))
        return NULL;
    making.type = (PyTypeObject *)type;
    making.base_offset = base_offset;
    making.base_timestamp = base_timestamp;
    PyObject *result = NULL, *records = NULL;
    if (position < 0 || position > view.len || !PyType_IsSubtype(making.type, &PyTuple_Type))
        PyErr_SetString(PyExc_AssertionError, "a position outside the payload, or a type that is no tuple");
    else
        records = PyList_New(0);
    if (records != NULL) {
        const uint8_t *start = view.buf;
        Reader payload = {start + position, start + view.len, NULL};
        int failed = 0;
        for (Py_ssize_t index = 0; index < count && !failed; index++) {
            const uint8_t *begin = payload.at;
            PyObject *record = make_record(&payload, &making);
            if (record == NULL && payload.error && index > 0) {
                payload.at = begin; /* those before it are given out first */
                break;
            }
            if (record == NULL && payload.error)
                PyErr_SetString(PyExc_ValueError, payload.error);
            failed = record == NULL || PyList_Append(records, record) < 0;
            Py_XDECREF(record);
        }
        if (!failed)
            result = Py_BuildValue("(On)", records, (Py_ssize_t)(payload.at - start));
        Py_DECREF(records);
    }
    PyBuffer_Release(&view);
    return result;
}

static int open_value(PyObject *object, Py_buffer *view)
{
    return object == Py_None ? 0 : PyObject_GetBuffer(object, view, PyBUF_SIMPLE);
}

/* Write nullable bytes, their length first. */
static uint8_t *write_bytes(uint8_t *to, const Py_buffer *view)
{
    to = write_varint(to, view->obj == NULL ? -1 : (int64_t)view->len);
    if (view->len)
        memcpy(to, view->buf, (size_t)view->len);
    return to + view->len;
}

static PyObject *encode_record(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    (void)module;
    if (nargs != 5) {
        PyErr_SetString(PyExc_TypeError, "encode_record takes timestamp_delta, offset_delta, key, value, headers");
        return NULL;
    }
    int64_t timestamp_delta = PyLong_AsLongLong(args[0]);
    int64_t offset_delta = PyLong_AsLongLong(args[1]);
    if (PyErr_Occurred())
        return NULL;
    PyObject *record = NULL;
    Py_buffer parts[3] = {{0}, {0}, {0}}; /* key, value, headers with their number */
    if (open_value(args[2], &parts[0]) == 0 && open_value(args[3], &parts[1]) == 0 && open_value(args[4], &parts[2]) == 0) {
        int64_t size = 1 + varint_size(timestamp_delta) + varint_size(offset_delta) + (parts[2].obj ? parts[2].len : 1);
        for (int index = 0; index < 2; index++)
            size += varint_size(parts[index].obj ? (int64_t)parts[index].len : -1) + parts[index].len;
        record = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(varint_size(size) + size));
        if (record != NULL) {
            uint8_t *to = write_varint((uint8_t *)PyBytes_AsString(record), size);
            *to++ = 0; /* attributes */
            to = write_varint(write_varint(to, timestamp_delta), offset_delta);
            to = write_bytes(write_bytes(to, &parts[0]), &parts[1]);
            if (parts[2].obj)
                memcpy(to, parts[2].buf, (size_t)parts[2].len);
            else
                *to = 0;
        }
    }
    for (int index = 0; index < 3; index++)
        if (parts[index].obj)
            PyBuffer_Release(&parts[index]);
    return record;
}

static PyMethodDef methods[] = {
    {"decode_records", decode_records, METH_VARARGS,
     "decode_records(record_type, payload, position, count, base_offset, base_timestamp, append_time, /)\n--\n\nReturn so many "
     "records as tuples of five, and the position after them; fewer before one that is malformed, ValueError at it."},
    {"encode_record", (PyCFunction)(void (*)(void))encode_record, METH_FASTCALL,
     "encode_record(timestamp_delta, offset_delta, key, value, headers, /)\n--\n\nReturn one record; headers are their bytes, "
     "number first, or None."},
    {"find_record", find_record, METH_VARARGS,
     "find_record(payload, count, timestamp_delta_min, offset_delta_min, /)\n--\n\nReturn timestamp and offset delta of the "
     "first record at or above both; None without one."},
    {"read_plain_batch", (PyCFunction)(void (*)(void))read_plain_batch, METH_FASTCALL,
     "read_plain_batch(records, now_ms, before_max_ms, after_max_ms, is_compacted, /)\n--\n\nReturn the fields of the header "
     "if the bytes are one plain batch, the CRC of a large one aside; None if they are not."},
    {"refused_records", refused_records, METH_VARARGS,
     "refused_records(payload, count, base_timestamp, earliest, latest, takes_no_timestamp, needs_keys, limit, /)\n--\n\nReturn "
     "the first records to be refused, how many there are, and how many for their timestamp."},
    {"renumber_records", renumber_records, METH_VARARGS,
     "renumber_records(payload, position, index, timestamp_shift, is_stamped, bytes_max, /)\n--\n\nReturn a piece of the records "
     "written anew, the position behind them, and the next index."},
    {"scan_records", (PyCFunction)(void (*)(void))scan_records, METH_FASTCALL,
     "scan_records(payload, count, /)\n--\n\nReturn least and greatest timestamp delta, how many keys are null, and whether "
     "offsets have gaps; ValueError if malformed."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module_definition = {
    PyModuleDef_HEAD_INIT, "_kernel", "Walks records; see scan.py, plain.py, record.py, finding.py and renumbering.py.", 0, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__kernel(void)
{
    fill_crc32c_table();
    return PyModuleDef_Init(&module_definition);
}
