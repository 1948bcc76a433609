/* The compiled twins of what compaction does with the records of a batch: run.py's copy of those that stay, key_table.py's table
 * of winners, header_due.py's look at a header. The twins give the same answers, down to the table's bytes: tests hold them
 * together.
 *
 * Optional, like _kernel.c.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

#include "_blake2b.h"
#include "_walking.h"

#define SLOT_BYTES 24
#define DIGITS_MAX 19
enum { GOES = 0, STAYS = 1, STAYS_FOR_NOW = 2 };

typedef struct {
    const uint8_t *start; /* of its length */
    const uint8_t *end;
    const uint8_t *value; /* where the value's length stands */
    const uint8_t *key;
    int64_t key_length; /* negative for null */
    int64_t timestamp_delta;
    int64_t offset_delta;
    int has_value;
} Record;

/* ---------------------------------------------------------------------------------------------------------- walking */

/* Read a record up to its value; the reader goes on at the next one. Return 0 when it is malformed. */
static int next_record(Reader *reader, Record *record)
{
    record->start = reader->at;
    int64_t length = read_zigzag(reader, VARINT_BYTES_MAX);
    if (reader->error)
        return 0;
    if (length <= 0 || length > reader->end - reader->at) {
        reader->error = "record cut off";
        return 0;
    }
    record->end = reader->at + length;
    reader->at++; /* attributes: none are defined, any are taken */
    record->timestamp_delta = read_zigzag(reader, VARLONG_BYTES_MAX);
    record->offset_delta = reader->error ? 0 : read_zigzag(reader, VARINT_BYTES_MAX);
    record->key = reader->error ? NULL : read_bytes(reader, &record->key_length);
    if (!reader->error && reader->at >= record->end)
        reader->error = "record cut off";
    if (reader->error)
        return 0;
    record->value = reader->at;
    record->has_value = !(*reader->at & 1);
    reader->at = record->end;
    return 1;
}

/* Raise ValueError when the reader found fault, or something is left behind the last record; return -1 then. */
static int finish(Reader *reader)
{
    if (!reader->error && reader->at != reader->end)
        reader->error = "bytes after the records";
    if (!reader->error)
        return 0;
    PyErr_SetString(PyExc_ValueError, reader->error);
    return -1;
}

static Reader reader_of(const Py_buffer *payload)
{
    Reader reader = {payload->buf, (const uint8_t *)payload->buf + payload->len, NULL};
    return reader;
}

/* ------------------------------------------------------------------------------------------------------------ the table */

typedef struct {
    uint8_t *slots;
    size_t slots_count;
    size_t slot_bytes;
    const int64_t *versions; /* of the batch's records; NULL where the offset decides */
} Table;

static int64_t offset_at(const uint8_t *slot)
{
    int64_t offset;
    memcpy(&offset, slot + HASH_BYTES, sizeof offset);
    return offset;
}

/* Return the slot of a record's key, or the free one that it would take; there is always one. */
static uint8_t *find_slot(const Table *table, const Record *record, uint8_t digest[HASH_BYTES])
{
    uint64_t number;
    hash_key(record->key, (size_t)record->key_length, digest);
    memcpy(&number, digest, sizeof number);
    size_t index = (size_t)(number % table->slots_count);
    for (;;) {
        uint8_t *slot = table->slots + index * table->slot_bytes;
        if (memcmp(slot, digest, HASH_BYTES) == 0 || offset_at(slot) == 0)
            return slot;
        if (++index == table->slots_count)
            index = 0;
    }
}

static int wins(const Table *table, const uint8_t *slot, int64_t offset, Py_ssize_t index)
{
    int64_t version;
    if (table->versions == NULL)
        return offset + 1 >= offset_at(slot);
    memcpy(&version, slot + SLOT_BYTES, sizeof version);
    return table->versions[index] > version || (table->versions[index] == version && offset + 1 >= offset_at(slot));
}

static void put(const Table *table, uint8_t *slot, int64_t offset, Py_ssize_t index)
{
    offset++; /* a slot of zeros is free */
    memcpy(slot + HASH_BYTES, &offset, sizeof offset);
    if (table->versions != NULL)
        memcpy(slot + SLOT_BYTES, &table->versions[index], sizeof(int64_t));
}

typedef struct {
    Py_buffer table, payload, versions;
    Table of;
    Reader reader;
    Py_ssize_t count;
} Walk;

static void end_walk(Walk *walk)
{
    if (walk->versions.obj != NULL)
        PyBuffer_Release(&walk->versions);
    if (walk->payload.obj != NULL)
        PyBuffer_Release(&walk->payload);
    if (walk->table.obj != NULL)
        PyBuffer_Release(&walk->table);
}

/* Take table, slot_bytes, payload, count, versions; return 0, or -1 with an exception. `end_walk` either way. */
static int begin_walk(Walk *walk, PyObject *table, Py_ssize_t slot_bytes, PyObject *payload, Py_ssize_t count, PyObject *versions)
{
    if (PyObject_GetBuffer(table, &walk->table, PyBUF_WRITABLE) < 0 || PyObject_GetBuffer(payload, &walk->payload, PyBUF_SIMPLE) < 0)
        return -1;
    if (versions != Py_None && PyObject_GetBuffer(versions, &walk->versions, PyBUF_SIMPLE) < 0)
        return -1;
    size_t wanted = versions == Py_None ? SLOT_BYTES : SLOT_BYTES + sizeof(int64_t);
    if ((size_t)slot_bytes != wanted || walk->table.len < slot_bytes || walk->table.len % slot_bytes || count < 0 ||
        (versions != Py_None && walk->versions.len / (Py_ssize_t)sizeof(int64_t) < count)) {
        PyErr_SetString(PyExc_AssertionError, "a table of other slots, or too few versions");
        return -1;
    }
    walk->of.slots = walk->table.buf;
    walk->of.slot_bytes = wanted;
    walk->of.slots_count = (size_t)walk->table.len / wanted;
    walk->of.versions = versions == Py_None ? NULL : walk->versions.buf;
    walk->reader = reader_of(&walk->payload);
    walk->count = count;
    return 0;
}

static PyObject *note_keys(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *table, *payload, *versions, *result = NULL;
    Py_ssize_t slot_bytes, count;
    long long keys_count, keys_max, base_offset, start_offset, full_at = -1;
    if (!PyArg_ParseTuple(args, "OnLLOnLLO", &table, &slot_bytes, &keys_count, &keys_max, &payload, &count, &base_offset,
                          &start_offset, &versions))
        return NULL;
    Walk walk = {0};
    if (begin_walk(&walk, table, slot_bytes, payload, count, versions) == 0) {
        Record record;
        uint8_t digest[HASH_BYTES];
        for (Py_ssize_t index = 0; index < count && next_record(&walk.reader, &record); index++) {
            int64_t offset = base_offset + record.offset_delta;
            if (full_at >= 0 || offset < start_offset || record.key_length < 0)
                continue;
            if (keys_count >= keys_max) {
                full_at = offset;
                continue;
            }
            uint8_t *slot = find_slot(&walk.of, &record, digest);
            if (offset_at(slot) == 0) {
                memcpy(slot, digest, HASH_BYTES);
                keys_count++;
                put(&walk.of, slot, offset, index);
            } else if (walk.of.versions == NULL || wins(&walk.of, slot, offset, index)) {
                put(&walk.of, slot, offset, index);
            }
        }
        if (finish(&walk.reader) == 0)
            result = Py_BuildValue("(LL)", keys_count, full_at);
    }
    end_walk(&walk);
    return result;
}

static PyObject *weigh_keys(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *table, *payload, *versions, *result = NULL;
    Py_ssize_t slot_bytes, count;
    long long base_offset, end_offset;
    if (!PyArg_ParseTuple(args, "OnOnLLO", &table, &slot_bytes, &payload, &count, &base_offset, &end_offset, &versions))
        return NULL;
    Walk walk = {0};
    if (begin_walk(&walk, table, slot_bytes, payload, count, versions) == 0) {
        Record record;
        uint8_t digest[HASH_BYTES];
        for (Py_ssize_t index = 0; index < count && next_record(&walk.reader, &record); index++) {
            int64_t offset = base_offset + record.offset_delta;
            if (offset >= end_offset || record.key_length < 0 || walk.of.versions == NULL)
                continue;
            uint8_t *slot = find_slot(&walk.of, &record, digest);
            if (offset_at(slot) != 0 && wins(&walk.of, slot, offset, index))
                put(&walk.of, slot, offset, index);
        }
        if (finish(&walk.reader) == 0)
            result = Py_NewRef(Py_None);
    }
    end_walk(&walk);
    return result;
}

static char flag_of(const Walk *walk, const Record *record, int64_t offset, Py_ssize_t index, int keeps_tombstones)
{
    uint8_t digest[HASH_BYTES];
    int may_go = !record->has_value && !keeps_tombstones;
    uint8_t *slot = find_slot(&walk->of, record, digest);
    if (offset_at(slot) == 0)
        return may_go ? GOES : STAYS;
    if (!wins(&walk->of, slot, offset, index))
        return GOES;
    if (walk->of.versions != NULL)
        return STAYS_FOR_NOW;
    return may_go ? GOES : STAYS;
}

static PyObject *keep_keys(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *table, *payload, *versions, *flags = NULL;
    Py_ssize_t slot_bytes, count;
    long long base_offset, end_offset;
    int keeps_tombstones;
    if (!PyArg_ParseTuple(args, "OnOnLLOp", &table, &slot_bytes, &payload, &count, &base_offset, &end_offset, &versions,
                          &keeps_tombstones))
        return NULL;
    Walk walk = {0};
    if (begin_walk(&walk, table, slot_bytes, payload, count, versions) == 0)
        flags = count > walk.payload.len ? PyBytes_FromStringAndSize(NULL, 0) : PyBytes_FromStringAndSize(NULL, count);
    if (flags != NULL) {
        char *flag = PyBytes_AsString(flags);
        Record record;
        Py_ssize_t index = 0;
        for (; index < PyBytes_Size(flags) && next_record(&walk.reader, &record); index++) {
            int64_t offset = base_offset + record.offset_delta;
            if (offset >= end_offset)
                flag[index] = STAYS;
            else
                flag[index] = record.key_length < 0 ? GOES : flag_of(&walk, &record, offset, index, keeps_tombstones);
        }
        if (!walk.reader.error && index < count)
            walk.reader.error = "record cut off";
        if (finish(&walk.reader) < 0)
            Py_CLEAR(flags);
    }
    end_walk(&walk);
    return flags;
}

/* ----------------------------------------------------------------------------------------------- what stays, and numbers */

static PyObject *copy_kept(PyObject *module, PyObject *args)
{
    (void)module;
    Py_buffer payload, flags;
    if (!PyArg_ParseTuple(args, "y*y*", &payload, &flags))
        return NULL;
    char *kept = PyMem_Malloc((size_t)payload.len + 1);
    PyObject *result = NULL;
    if (kept == NULL) {
        PyErr_NoMemory();
    } else {
        Reader reader = reader_of(&payload);
        Record record;
        char *to = kept;
        const uint8_t *from = reader.at; /* what is still to be copied begins here */
        const uint8_t *until = reader.at;
        Py_ssize_t count = 0;
        int64_t delta_max = 0;
        int has_tombstones = 0;
        for (Py_ssize_t index = 0; index < flags.len && next_record(&reader, &record); index++) {
            if (!((const char *)flags.buf)[index])
                continue;
            if (record.start != until) {
                memcpy(to, from, (size_t)(until - from));
                to += until - from;
                from = record.start;
            }
            until = record.end;
            if (count++ == 0 || record.timestamp_delta > delta_max)
                delta_max = record.timestamp_delta;
            has_tombstones |= !record.has_value;
        }
        memcpy(to, from, (size_t)(until - from));
        to += until - from;
        if (finish(&reader) == 0)
            result = Py_BuildValue("(y#nLO)", kept, (Py_ssize_t)(to - kept), count, (long long)delta_max,
                                   has_tombstones ? Py_True : Py_False);
        PyMem_Free(kept);
    }
    PyBuffer_Release(&payload);
    PyBuffer_Release(&flags);
    return result;
}

/* Return bytes for count numbers of 8 bytes, no more than a payload of that size can have. */
static PyObject *new_numbers(Reader *reader, Py_ssize_t count)
{
    if (count < 0 || count > reader->end - reader->at) {
        PyErr_SetString(PyExc_ValueError, "record cut off");
        return NULL;
    }
    return PyBytes_FromStringAndSize(NULL, count * (Py_ssize_t)sizeof(int64_t));
}

static PyObject *record_times(PyObject *module, PyObject *args)
{
    (void)module;
    Py_buffer payload;
    Py_ssize_t count;
    long long base_timestamp;
    if (!PyArg_ParseTuple(args, "y*nL", &payload, &count, &base_timestamp))
        return NULL;
    Reader reader = reader_of(&payload);
    PyObject *numbers = new_numbers(&reader, count);
    if (numbers != NULL) {
        Record record;
        int64_t *number = (int64_t *)PyBytes_AsString(numbers);
        for (Py_ssize_t index = 0; index < count && next_record(&reader, &record); index++)
            number[index] = (int64_t)((uint64_t)base_timestamp + (uint64_t)record.timestamp_delta);
        if (finish(&reader) < 0)
            Py_CLEAR(numbers);
    }
    PyBuffer_Release(&payload);
    return numbers;
}

/* Set *number to what the bytes say in decimal and return 1; 0 when they are no such number. */
static int read_decimal(const uint8_t *at, int64_t length, int takes_sign, int64_t *number)
{
    int is_negative = 0;
    if (takes_sign && length > 0 && (*at == '-' || *at == '+')) {
        is_negative = *at == '-';
        at++;
        length--;
    }
    if (length < 1 || length > DIGITS_MAX)
        return 0;
    uint64_t result = 0; /* 19 digits fit into 64 bits */
    for (; length > 0; length--, at++) {
        if (*at < '0' || *at > '9')
            return 0;
        result = result * 10 + (uint64_t)(*at - '0');
    }
    if (result > (uint64_t)INT64_MAX + (uint64_t)is_negative)
        return -1; /* digits, but too large */
    *number = is_negative ? (int64_t)(0 - result) : (int64_t)result;
    return 1;
}

static int64_t number_of(const uint8_t *value, int64_t length, int takes_binary, int64_t missing)
{
    int64_t number;
    int is_decimal = read_decimal(value, length, takes_binary, &number);
    if (is_decimal == 1)
        return number;
    if (is_decimal < 0 || !takes_binary || length != 8)
        return missing;
    uint64_t word = 0;
    for (int index = 0; index < 8; index++)
        word = word << 8 | value[index];
    return (int64_t)word;
}

static PyObject *header_numbers(PyObject *module, PyObject *args)
{
    (void)module;
    Py_buffer payload, name;
    Py_ssize_t count;
    int takes_binary;
    long long missing;
    if (!PyArg_ParseTuple(args, "y*ny*pL", &payload, &count, &name, &takes_binary, &missing))
        return NULL;
    Reader reader = reader_of(&payload);
    PyObject *numbers = new_numbers(&reader, count);
    if (numbers != NULL) {
        Record record;
        int64_t *number = (int64_t *)PyBytes_AsString(numbers);
        for (Py_ssize_t index = 0; index < count && next_record(&reader, &record); index++) {
            Reader rest = {record.value, record.end, NULL};
            int64_t length, headers;
            number[index] = missing;
            read_bytes(&rest, &length);
            headers = rest.error ? 0 : read_zigzag(&rest, VARINT_BYTES_MAX);
            if (!rest.error && (headers < 0 || headers > rest.end - rest.at))
                rest.error = "impossible number of record headers";
            for (; headers > 0 && !rest.error; headers--) {
                const uint8_t *key = read_bytes(&rest, &length);
                int is_it = !rest.error && length == name.len && memcmp(key, name.buf, (size_t)length) == 0;
                if (!rest.error && length < 0)
                    rest.error = "null key of a record header";
                const uint8_t *value = rest.error ? NULL : read_bytes(&rest, &length);
                if (!rest.error && is_it)
                    number[index] = length < 0 ? missing : number_of(value, length, takes_binary, missing);
            }
            if (!rest.error && rest.at != rest.end)
                rest.error = "record of another length than it tells";
            if (rest.error) {
                reader.error = rest.error;
                break;
            }
        }
        if (finish(&reader) < 0)
            Py_CLEAR(numbers);
    }
    PyBuffer_Release(&payload);
    PyBuffer_Release(&name);
    return numbers;
}

static PyMethodDef methods[] = {
    {"copy_kept", copy_kept, METH_VARARGS,
     "copy_kept(payload, flags, /)\n--\n\nReturn the bytes of the records whose flag is not 0, their number, their largest "
     "timestamp delta, and whether one is a tombstone."},
    {"header_numbers", header_numbers, METH_VARARGS,
     "header_numbers(payload, count, name, takes_binary, missing, /)\n--\n\nReturn the numbers in the records' headers."},
    {"keep_keys", keep_keys, METH_VARARGS,
     "keep_keys(table, slot_bytes, payload, count, base_offset, end_offset, versions, keeps_tombstones, /)\n--\n\nReturn a flag "
     "for each record."},
    {"note_keys", note_keys, METH_VARARGS,
     "note_keys(table, slot_bytes, keys_count, keys_max, payload, count, base_offset, start_offset, versions, /)\n--\n\nReturn the "
     "new number of keys, and the first offset that there was no room for, or -1."},
    {"record_times", record_times, METH_VARARGS,
     "record_times(payload, count, base_timestamp, /)\n--\n\nReturn the records' timestamps."},
    {"weigh_keys", weigh_keys, METH_VARARGS,
     "weigh_keys(table, slot_bytes, payload, count, base_offset, end_offset, versions, /)\n--\n\nTake note of records of keys that "
     "are in the table."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module_definition = {
    PyModuleDef_HEAD_INIT, "_runs", "What compaction does with the records of a batch; see run.py.", 0, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__runs(void)
{
    return PyModuleDef_Init(&module_definition);
}
