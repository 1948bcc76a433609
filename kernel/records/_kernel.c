/* The compiled twins of two functions: scan.py's walk over the records of one batch, and plain.py's look at a whole batch. The
 * twins give the same answers: tests hold them together.
 *
 * Optional: without a compiler the package installs all the same and Python does the work.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

#include "_walking.h"

/* Step over nullable bytes and return their length, negative for null. */
static int64_t skip_bytes(Reader *reader)
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
static int scan_record(Reader *reader, Py_ssize_t index, Scan *scan)
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

/* Fill scan and null_keys; return 0, or -1 with a Python exception set. */
static int scan_all(Reader *reader, Py_ssize_t count, Scan *scan, PyObject *null_keys)
{
    for (Py_ssize_t index = 0; index < count; index++) {
        int is_null = scan_record(reader, index, scan);
        if (is_null < 0)
            break;
        if (is_null) {
            PyObject *number = PyLong_FromSsize_t(index);
            if (number == NULL)
                return -1;
            int failed = PyList_Append(null_keys, number);
            Py_DECREF(number);
            if (failed)
                return -1;
        }
    }
    if (!reader->error && reader->at != reader->end)
        reader->error = "bytes after the records";
    if (reader->error) {
        PyErr_SetString(PyExc_ValueError, reader->error);
        return -1;
    }
    return 0;
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
    PyObject *result = NULL;
    PyObject *null_keys = PyList_New(0);
    if (null_keys != NULL) {
        Reader reader = {view.buf, (const uint8_t *)view.buf + view.len, NULL};
        Scan scan = {0, 0, 0};
        if (scan_all(&reader, count, &scan, null_keys) == 0)
            result = Py_BuildValue("(LLOO)", (long long)scan.timestamp_delta_min, (long long)scan.timestamp_delta_max,
                                   null_keys, scan.has_offset_gaps ? Py_True : Py_False);
        Py_DECREF(null_keys);
    }
    PyBuffer_Release(&view);
    return result;
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

/* Fill fields with the header and return 1 if the bytes are a plain batch, 0 if they are not. The CRC is not looked at. */
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
            PyTuple_SET_ITEM(header, index, number);
    }
    return header;
}

static PyMethodDef methods[] = {
    {"read_plain_batch", (PyCFunction)(void (*)(void))read_plain_batch, METH_FASTCALL,
     "read_plain_batch(records, now_ms, before_max_ms, after_max_ms, is_compacted, /)\n--\n\nReturn the fields of the header "
     "if the bytes are one plain batch, CRC aside; None if they are not."},
    {"scan_records", (PyCFunction)(void (*)(void))scan_records, METH_FASTCALL,
     "scan_records(payload, count, /)\n--\n\nReturn least and greatest timestamp delta, indexes of null keys, and whether "
     "offsets have gaps; ValueError if malformed."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module_definition = {
    PyModuleDef_HEAD_INIT, "_kernel", "Walks records; see scan.py and plain.py.", 0, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__kernel(void)
{
    return PyModuleDef_Init(&module_definition);
}
