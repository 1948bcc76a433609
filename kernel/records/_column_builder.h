/* Records into columns: the builder, and the batches whose records it is given. */
#ifndef ODRADEK_COLUMN_BUILDER_H
#define ODRADEK_COLUMN_BUILDER_H

#include "_column_memory.h"
#include "_crc32c.h"

enum { KEY = 1, VALUE = 2, OFFSET = 4, TIMESTAMP = 8, TIMESTAMP_TYPE = 16, HEADERS = 32 };

#define RUN_BATCH_MAX 32768 /* bytes: a larger batch is worth a call of its own, and a checksum of three streams */

typedef struct {
    PyObject_HEAD
    int wanted;
    Py_ssize_t rows_max;
    int64_t bytes_max;
    Py_ssize_t rows;
    int64_t bytes; /* of keys, values and headers */
    Binary keys, values, header_keys, header_values;
    Room offsets, timestamps, types, list_offsets;
    Validity list_validity;
} Builder;

typedef struct {
    Py_ssize_t index;
    Py_ssize_t count;
    int64_t base_offset;
    int64_t base_timestamp;
    int timestamp_type;
    int64_t start;
    int64_t end;
} Batch;

typedef struct {
    const uint8_t *key, *value;
    int64_t key_length, value_length;
    int64_t size; /* of what is wanted of the three */
} Parts;

/* Read key and value as far as anything from there on is wanted; headers begin at the reader then. */
static inline void read_parts(Reader *record, int wanted, Parts *parts)
{
    parts->size = 0;
    if (wanted & (KEY | VALUE | HEADERS)) {
        parts->key = read_bytes(record, &parts->key_length);
        if (wanted & KEY && parts->key_length > 0)
            parts->size += parts->key_length;
    }
    if (!record->error && wanted & (VALUE | HEADERS)) {
        parts->value = read_bytes(record, &parts->value_length);
        if (wanted & VALUE && parts->value_length > 0)
            parts->size += parts->value_length;
    }
    if (wanted & HEADERS)
        parts->size += record->end - record->at;
}

/* Add a header's key as UTF-8, with U+FFFD for what is none. */
static int put_text(Binary *column, const uint8_t *text, int64_t length)
{
    int64_t index = 0;
    while (index < length && text[index] < 0x80)
        index++;
    if (index == length)
        return put_binary(column, text, length);
    int failed = -1;
    PyObject *decoded = PyUnicode_DecodeUTF8((const char *)text, (Py_ssize_t)length, "replace");
    if (decoded != NULL) {
        Py_ssize_t size;
        const char *encoded = PyUnicode_AsUTF8AndSize(decoded, &size);
        if (encoded != NULL)
            failed = put_binary(column, (const uint8_t *)encoded, size);
        Py_DECREF(decoded);
    }
    return failed;
}

/* Walk a record's headers, to its end, and add them unless builder is NULL; return how many, or -1 with an exception. */
static int64_t walk_headers(Reader *record, Builder *builder)
{
    int64_t count = read_zigzag(record, VARINT_BYTES_MAX);
    if (!record->error && (count < 0 || count > record->end - record->at))
        record->error = "impossible number of record headers";
    for (int64_t index = 0; index < count && !record->error; index++) {
        int64_t key_length, value_length;
        const uint8_t *key = read_bytes(record, &key_length);
        if (!record->error && key_length < 0)
            record->error = "null key of a record header";
        if (record->error)
            break;
        const uint8_t *value = read_bytes(record, &value_length);
        if (record->error || builder == NULL)
            continue;
        if (put_text(&builder->header_keys, key, key_length) < 0 ||
            put_binary(&builder->header_values, value, value_length) < 0)
            return -1;
    }
    if (!record->error && record->at != record->end)
        record->error = "record of another length than it tells";
    return record->error ? refuse(record->error) : count;
}

static int put_headers(Builder *self, Reader *record)
{
    if (self->rows == 0 && put_int32(&self->list_offsets, 0) < 0)
        return -1;
    int64_t count = walk_headers(record, self);
    if (count < 0 || put_validity(&self->list_validity, self->rows, count > 0) < 0)
        return -1;
    return put_int32(&self->list_offsets, (int32_t)self->header_keys.rows);
}

static inline int put_timestamp(Builder *self, const Batch *batch, int64_t delta)
{
    int64_t timestamp = batch->base_timestamp;
    if ((!batch->timestamp_type && __builtin_add_overflow(timestamp, delta, &timestamp)) ||
        __builtin_mul_overflow(timestamp, (int64_t)MICROSECONDS, &timestamp))
        return refuse("a timestamp that 64 bits of microseconds cannot hold");
    return put_int64(&self->timestamps, timestamp);
}

/* Add a row of what was read; return 0, or -1 with an exception. */
OFTEN int put_row(Builder *self, const Batch *batch, Reader *record, const Parts *parts, int64_t offset, int64_t delta)
{
    int wanted = self->wanted;
    if (wanted & KEY && put_binary(&self->keys, parts->key, parts->key_length) < 0)
        return -1;
    if (wanted & VALUE && put_binary(&self->values, parts->value, parts->value_length) < 0)
        return -1;
    if (wanted & OFFSET && put_int64(&self->offsets, offset) < 0)
        return -1;
    if (wanted & TIMESTAMP && put_timestamp(self, batch, delta) < 0)
        return -1;
    if (wanted & TIMESTAMP_TYPE && put_int32(&self->types, batch->timestamp_type) < 0)
        return -1;
    if (wanted & HEADERS && put_headers(self, record) < 0)
        return -1;
    self->bytes += parts->size;
    self->rows++;
    return 0;
}

/* Walk records until they end or there are rows enough; the reader stands at the next one then. 0, or -1 with an exception. */
static int walk_records(Builder *self, Batch *batch, Reader *payload)
{
    for (; batch->index < batch->count; batch->index++) {
        const uint8_t *begin = payload->at;
        int64_t length = read_zigzag(payload, VARINT_BYTES_MAX);
        if (payload->error)
            return refuse(payload->error);
        if (length <= 0 || length > payload->end - payload->at)
            return refuse("record cut off");
        Reader record = {payload->at + 1, payload->at + length, NULL}; /* attributes: none are defined, any are taken */
        int64_t delta = read_zigzag(&record, VARLONG_BYTES_MAX);
        int64_t offset = batch->base_offset + (record.error ? 0 : read_zigzag(&record, VARINT_BYTES_MAX));
        if (record.error)
            return refuse(record.error);
        if (offset >= batch->end) {
            batch->index = batch->count;
            payload->at = payload->end;
            return 0;
        }
        int is_row = offset >= batch->start;
        payload->at = begin; /* where to go on if there are rows enough */
        if (is_row && self->rows >= self->rows_max)
            return 0;
        Parts parts = {NULL, NULL, -1, -1, 0};
        read_parts(&record, self->wanted, &parts);
        if (record.error)
            return refuse(record.error);
        if (!is_row) {
            if (self->wanted & HEADERS && walk_headers(&record, NULL) < 0)
                return -1;
        } else {
            if (self->rows && parts.size > self->bytes_max - self->bytes)
                return 0;
            if (put_row(self, batch, &record, &parts, offset, delta) < 0)
                return -1;
            batch->start = offset + 1;
        }
        payload->at = record.end;
    }
    return payload->at == payload->end ? 0 : refuse("bytes after the records");
}

static PyObject *builder_add(Builder *self, PyObject *const *args, Py_ssize_t nargs)
{
    int64_t numbers[8];
    if (nargs != 9) {
        PyErr_SetString(PyExc_TypeError, "add takes nine arguments");
        return NULL;
    }
    for (int index = 0; index < 8; index++)
        if (take_number(args[index + 1], &numbers[index]) < 0)
            return NULL;
    Batch batch = {numbers[1], numbers[2] < 0 ? 0 : numbers[2], numbers[3], numbers[4], numbers[5] != 0, numbers[6], numbers[7]};
    Py_buffer view;
    if (PyObject_GetBuffer(args[0], &view, PyBUF_SIMPLE) < 0)
        return NULL;
    PyObject *result = NULL;
    const uint8_t *bytes = view.buf;
    if (numbers[0] < 0 || numbers[0] > view.len || batch.index < 0 || batch.base_offset < 0 ||
        batch.base_offset > INT64_MAX - ((int64_t)1 << 31)) {
        PyErr_SetString(PyExc_AssertionError, "a position outside the payload, or an impossible base offset");
    } else {
        Reader payload = {bytes + numbers[0], bytes + view.len, NULL};
        if (walk_records(self, &batch, &payload) == 0)
            result = Py_BuildValue("(nnL)", (Py_ssize_t)(payload.at - bytes), batch.index, (long long)batch.start);
    }
    PyBuffer_Release(&view);
    return result;
}

typedef struct {
    int64_t base_offset, length, next_offset, base_timestamp, count;
    uint32_t crc;
    int attributes;
} Header;

/* Read the header at `at`, where `left` bytes begin; return whether it is that of a whole batch. */
static int read_header(const uint8_t *at, Py_ssize_t left, Header *header)
{
    if (left < HEADER_SIZE)
        return 0;
    header->base_offset = read_big_endian(at, 8);
    header->length = read_big_endian(at + 8, 4) + LOG_OVERHEAD;
    header->crc = (uint32_t)read_big_endian(at + 17, 4);
    header->attributes = (int)read_big_endian(at + 21, 2);
    int64_t last_offset_delta = read_big_endian(at + 23, 4);
    header->next_offset = header->base_offset + last_offset_delta + 1;
    header->base_timestamp = read_big_endian(at + (header->attributes & TIMESTAMP_TYPE_FLAG ? 35 : 27), 8);
    header->count = read_big_endian(at + 57, 4);
    return at[16] == MAGIC && header->length >= HEADER_SIZE && header->length <= left && header->base_offset >= 0 &&
           header->base_offset <= INT64_MAX - ((int64_t)1 << 31) && last_offset_delta >= 0;
}

/* The same for a batch of which nothing is odd. */
static int read_run_header(const uint8_t *at, Py_ssize_t left, int odd_attributes, Header *header)
{
    return read_header(at, left, header) && header->length <= RUN_BATCH_MAX && !(header->attributes & odd_attributes) &&
           header->count >= 0;
}

/* Put the batch's offset before the words of a ValueError. */
static void name_batch(int64_t base_offset)
{
    PyObject *type, *value, *traceback;
    if (!PyErr_ExceptionMatches(PyExc_ValueError))
        return;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_Format(PyExc_ValueError, "batch at offset %lld: %S", (long long)base_offset, value);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
}

/* Collect whole batches of which nothing is odd, while there is room for all of each; 0, or -1 with an exception. */
static int add_batches(Builder *self, const Py_buffer *view, int64_t numbers[5])
{
    enum { PLACE, CHECKS_CRC, IS_READ_COMMITTED, START, END };
    int odd_attributes = COMPRESSION_MASK | CONTROL_FLAG | (numbers[IS_READ_COMMITTED] ? TRANSACTIONAL_FLAG : 0);
    Header header;
    for (;;) {
        const uint8_t *at = (const uint8_t *)view->buf + numbers[PLACE];
        if (!read_run_header(at, view->len - numbers[PLACE], odd_attributes, &header) || header.base_offset >= numbers[END] ||
            header.count > self->rows_max - self->rows || header.length > self->bytes_max - self->bytes)
            return 0;
        if (numbers[CHECKS_CRC] && crc32c(at + 21, (size_t)header.length - 21) != header.crc)
            return 0; /* Python says what is wrong */
        if (header.next_offset > numbers[START]) {
            Batch batch = {0,
                           (Py_ssize_t)header.count,
                           header.base_offset,
                           header.base_timestamp,
                           (header.attributes & TIMESTAMP_TYPE_FLAG) != 0,
                           numbers[START],
                           numbers[END]};
            Reader payload = {at + HEADER_SIZE, at + header.length, NULL};
            if (walk_records(self, &batch, &payload) < 0) {
                name_batch(header.base_offset);
                return -1;
            }
            numbers[START] = batch.start > header.next_offset ? batch.start : header.next_offset;
        }
        numbers[PLACE] += header.length;
    }
}

static PyObject *builder_add_run(Builder *self, PyObject *const *args, Py_ssize_t nargs)
{
    int64_t numbers[5];
    if (nargs != 6) {
        PyErr_SetString(PyExc_TypeError, "add_run takes six arguments");
        return NULL;
    }
    for (int index = 0; index < 5; index++)
        if (take_number(args[index + 1], &numbers[index]) < 0)
            return NULL;
    Py_buffer view;
    if (PyObject_GetBuffer(args[0], &view, PyBUF_SIMPLE) < 0)
        return NULL;
    PyObject *result = NULL;
    if (numbers[0] < 0 || numbers[0] > view.len)
        PyErr_SetString(PyExc_AssertionError, "a place outside the run");
    else if (add_batches(self, &view, numbers) == 0)
        result = Py_BuildValue("(LL)", (long long)numbers[0], (long long)numbers[3]);
    PyBuffer_Release(&view);
    return result;
}

static void clear_builder(Builder *self)
{
    clear_binary(&self->keys);
    clear_binary(&self->values);
    clear_binary(&self->header_keys);
    clear_binary(&self->header_values);
    clear_room(&self->offsets);
    clear_room(&self->timestamps);
    clear_room(&self->types);
    clear_room(&self->list_offsets);
    clear_room(&self->list_validity.bits);
    self->list_validity.has_nulls = 0;
    self->rows = 0;
    self->bytes = 0;
}

static PyObject *builder_clear(Builder *self, PyObject *unused)
{
    (void)unused;
    clear_builder(self);
    Py_RETURN_NONE;
}

static PyObject *take_headers(Builder *self)
{
    if (self->rows == 0 && put_int32(&self->list_offsets, 0) < 0)
        return NULL;
    PyObject *parts[4] = {
        take_validity(&self->list_validity),
        take_room(&self->list_offsets),
        take_binary(&self->header_keys),
        take_binary(&self->header_values),
    };
    int has_all = parts[0] && parts[1] && parts[2] && parts[3];
    PyObject *headers = has_all ? PyTuple_Pack(4, parts[0], parts[1], parts[2], parts[3]) : NULL;
    for (int index = 0; index < 4; index++)
        Py_XDECREF(parts[index]);
    return headers;
}

static PyObject *builder_take(Builder *self, PyObject *unused)
{
    (void)unused;
    int wanted = self->wanted;
    PyObject *taken = PyTuple_New(7);
    if (taken == NULL)
        return NULL;
    PyObject *parts[7] = {
        PyLong_FromSsize_t(self->rows),
        wanted & KEY ? take_binary(&self->keys) : Py_NewRef(Py_None),
        wanted & VALUE ? take_binary(&self->values) : Py_NewRef(Py_None),
        wanted & OFFSET ? take_room(&self->offsets) : Py_NewRef(Py_None),
        wanted & TIMESTAMP ? take_room(&self->timestamps) : Py_NewRef(Py_None),
        wanted & TIMESTAMP_TYPE ? take_room(&self->types) : Py_NewRef(Py_None),
        wanted & HEADERS ? take_headers(self) : Py_NewRef(Py_None),
    };
    int failed = 0;
    for (int index = 0; index < 7; index++) {
        failed |= parts[index] == NULL;
        PyTuple_SetItem(taken, index, parts[index]);
    }
    clear_builder(self);
    if (failed)
        Py_CLEAR(taken);
    return taken;
}

static PyObject *builder_rows(Builder *self, void *unused)
{
    (void)unused;
    return PyLong_FromSsize_t(self->rows);
}

static PyObject *builder_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    int wanted;
    Py_ssize_t rows_max;
    long long bytes_max;
    if (keywords != NULL && PyDict_Size(keywords)) {
        PyErr_SetString(PyExc_TypeError, "ColumnBuilder takes no keywords");
        return NULL;
    }
    if (!PyArg_ParseTuple(args, "inL", &wanted, &rows_max, &bytes_max))
        return NULL;
    Builder *self = (Builder *)PyType_GenericAlloc(type, 0); /* all zeros */
    if (self == NULL)
        return NULL;
    self->wanted = wanted;
    self->rows_max = rows_max;
    self->bytes_max = bytes_max;
    return (PyObject *)self;
}

static void builder_dealloc(Builder *self)
{
    PyTypeObject *type = Py_TYPE((PyObject *)self);
    clear_builder(self);
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyMethodDef builder_methods[] = {
    {"add", (PyCFunction)(void (*)(void))builder_add, METH_FASTCALL,
     "add(payload, position, index, count, base_offset, base_timestamp, timestamp_type, start, end, /)\n--\n\nCollect records of "
     "one batch until they end or there are rows enough."},
    {"add_run", (PyCFunction)(void (*)(void))builder_add_run, METH_FASTCALL,
     "add_run(run, place, checks_crc, is_read_committed, start, end, /)\n--\n\nCollect whole batches of which nothing is odd."},
    {"clear", (PyCFunction)builder_clear, METH_NOARGS, "clear()\n--\n\nForget what was collected."},
    {"take", (PyCFunction)builder_take, METH_NOARGS, "take()\n--\n\nReturn what was collected, and begin anew."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef builder_attributes[] = {
    {"rows", (getter)builder_rows, NULL, "How many rows were collected.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot builder_slots[] = {
    {Py_tp_doc, "ColumnBuilder(wanted, rows_max, bytes_max, /)\n--\n\nCollects columns; see column_walk.py."},
    {Py_tp_new, builder_new},
    {Py_tp_dealloc, builder_dealloc},
    {Py_tp_methods, builder_methods},
    {Py_tp_getset, builder_attributes},
    {0, NULL},
};

static PyType_Spec builder_spec = {
    .name = "odradek.kernel.records._columns.ColumnBuilder",
    .basicsize = sizeof(Builder),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = builder_slots,
};

#endif
