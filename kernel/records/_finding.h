/* What is looked for among a batch's records, without objects of them: who is to be refused, and whom a timestamp means.
 *
 * The twins are in finding.py. A large payload is walked without the interpreter's lock, so that on a worker thread it
 * holds up nobody.
 */
#ifndef ODRADEK_FINDING_H
#define ODRADEK_FINDING_H

#include "_walking.h"

#define FOUND_MAX 4096

typedef struct {
    int64_t timestamp_delta, offset_delta, key_length, value_length;
    const uint8_t *key, *value, *headers, *end;
} Walked;

/* Step over one record by the length that it tells; its headers are not looked at. */
OFTEN void walk_record(Reader *payload, Walked *record)
{
    int64_t length = read_zigzag(payload, VARINT_BYTES_MAX);
    if (!payload->error && (length <= 0 || length > payload->end - payload->at))
        payload->error = "record cut off";
    if (payload->error)
        return;
    Reader reader = {payload->at + 1, payload->at + length, NULL}; /* attributes: none are defined, any are taken */
    record->timestamp_delta = read_zigzag(&reader, VARLONG_BYTES_MAX);
    record->offset_delta = reader.error ? 0 : read_zigzag(&reader, VARINT_BYTES_MAX);
    record->key = reader.error ? NULL : read_bytes(&reader, &record->key_length);
    record->value = reader.error ? NULL : read_bytes(&reader, &record->value_length);
    record->headers = reader.at;
    record->end = reader.end;
    payload->error = reader.error;
    payload->at = reader.end;
}

typedef struct {
    int64_t base_timestamp, earliest, latest;
    int takes_no_timestamp, needs_keys;
} Wanted;

typedef struct {
    int64_t index, offset_delta, timestamp_delta, key_length, value_length;
} Found;

/* Return whether base + delta lies within [earliest, latest]; beyond an int64 it does not. */
OFTEN int is_in_time(const Wanted *wanted, int64_t delta)
{
    int64_t timestamp;
    if (__builtin_add_overflow(wanted->base_timestamp, delta, &timestamp))
        return 0;
    if (wanted->takes_no_timestamp && timestamp == -1)
        return 1;
    return wanted->earliest <= timestamp && timestamp <= wanted->latest;
}

/* Fill found with the first records to be refused, at most limit; count all of them, and those for their timestamp. */
static void find_refused(Reader *payload, int64_t count, const Wanted *wanted, Found *found, int64_t limit, int64_t counts[2])
{
    Walked record = {0};
    for (int64_t index = 0; index < count; index++) {
        walk_record(payload, &record);
        if (payload->error)
            return;
        int is_keyless = wanted->needs_keys && record.key_length < 0;
        if (!is_keyless && is_in_time(wanted, record.timestamp_delta))
            continue;
        if (counts[0] < limit)
            found[counts[0]] = (Found){index, record.offset_delta, record.timestamp_delta, record.key_length, record.value_length};
        counts[0]++;
        counts[1] += !is_keyless;
    }
}

static PyObject *list_of_found(const Found *found, int64_t count)
{
    PyObject *list = PyList_New(0);
    for (int64_t index = 0; list != NULL && index < count; index++, found++) {
        PyObject *item = Py_BuildValue("(LLLLL)", (long long)found->index, (long long)found->offset_delta,
                                       (long long)found->timestamp_delta, (long long)found->key_length,
                                       (long long)found->value_length);
        if (item == NULL || PyList_Append(list, item) < 0)
            Py_CLEAR(list);
        Py_XDECREF(item);
    }
    return list;
}

static PyObject *refused_records(PyObject *module, PyObject *args)
{
    (void)module;
    Py_buffer view;
    Py_ssize_t count, limit;
    long long base_timestamp, earliest, latest;
    int takes_no_timestamp, needs_keys;
    if (!PyArg_ParseTuple(args, "y*nLLLppn", &view, &count, &base_timestamp, &earliest, &latest, &takes_no_timestamp,
                          &needs_keys, &limit))
        return NULL;
    int is_sound = limit > 0 && limit <= FOUND_MAX;
    Found *found = is_sound ? PyMem_Malloc((size_t)limit * sizeof(Found)) : NULL;
    PyObject *result = NULL;
    if (!is_sound) {
        PyErr_SetString(PyExc_AssertionError, "none are asked for, or more than are kept");
    } else if (found == NULL) {
        PyErr_NoMemory();
    } else {
        Wanted wanted = {base_timestamp, earliest, latest, takes_no_timestamp, needs_keys};
        Reader payload = {view.buf, (const uint8_t *)view.buf + view.len, NULL};
        int64_t counts[2] = {0, 0};
        PyThreadState *state = view.len > LOCKED_BYTES_MAX ? PyEval_SaveThread() : NULL;
        find_refused(&payload, count, &wanted, found, limit, counts);
        if (state != NULL)
            PyEval_RestoreThread(state);
        if (payload.error)
            PyErr_SetString(PyExc_ValueError, payload.error);
        PyObject *list = payload.error ? NULL : list_of_found(found, counts[0] < limit ? counts[0] : limit);
        if (list != NULL)
            result = Py_BuildValue("(NLL)", list, (long long)counts[0], (long long)counts[1]);
    }
    PyMem_Free(found);
    PyBuffer_Release(&view);
    return result;
}

static PyObject *find_record(PyObject *module, PyObject *args)
{
    (void)module;
    Py_buffer view;
    Py_ssize_t count;
    long long timestamp_delta_min, offset_delta_min;
    if (!PyArg_ParseTuple(args, "y*nLL", &view, &count, &timestamp_delta_min, &offset_delta_min))
        return NULL;
    Reader payload = {view.buf, (const uint8_t *)view.buf + view.len, NULL};
    Walked record = {0};
    int is_found = 0;
    PyThreadState *state = view.len > LOCKED_BYTES_MAX ? PyEval_SaveThread() : NULL;
    for (Py_ssize_t index = 0; index < count && !is_found && !payload.error; index++) {
        walk_record(&payload, &record);
        is_found = !payload.error && record.timestamp_delta >= timestamp_delta_min && record.offset_delta >= offset_delta_min;
    }
    if (state != NULL)
        PyEval_RestoreThread(state);
    PyObject *result = NULL;
    if (payload.error)
        PyErr_SetString(PyExc_ValueError, payload.error);
    else if (is_found)
        result = Py_BuildValue("(LL)", (long long)record.timestamp_delta, (long long)record.offset_delta);
    else
        result = Py_NewRef(Py_None);
    PyBuffer_Release(&view);
    return result;
}

#endif
