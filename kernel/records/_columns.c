/* The compiled twins of column_walk.py: the records of batches copied into columns, and rows of columns into records. The twins
 * give the same answers: tests hold them together.
 *
 * Optional, like _kernel.c.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

#include "_crc32c.h"
#include "_walking.h"

enum { KEY = 1, VALUE = 2, OFFSET = 4, TIMESTAMP = 8, TIMESTAMP_TYPE = 16, HEADERS = 32 };

#define MICROSECONDS 1000
#define WRITTEN_MIN 16384
#define RUN_BATCH_MAX 32768 /* bytes: a larger batch is worth a call of its own, and a checksum of three streams */

/* -------------------------------------------------------------------------------------------------------------- memory */

/* A column's memory, which others see as a read-only buffer. */
typedef struct {
    PyObject_HEAD
    char *bytes;
    Py_ssize_t capacity; /* a power of two */
    Py_ssize_t size;     /* what others see */
} Chunk;

#define CAPACITY_MIN 256
#define POOLED_MIN 32768
#define POOLED_MAX (8 * 1024 * 1024)
#define POOL_SLOTS 16
#define FAST_GROWTH_MAX (1024 * 1024)

/* What nobody needs any more, the oldest first from pool_next on: a page that the system gives anew, and fills with zeros,
 * costs more than what is copied into it. It is the process's, behind the interpreter's lock. */
static struct {
    char *bytes; /* NULL: the slot is free */
    Py_ssize_t capacity;
} pool[POOL_SLOTS];
static int pool_next;

static void give_back(char *bytes, Py_ssize_t capacity)
{
    if (bytes == NULL || capacity < POOLED_MIN || capacity > POOLED_MAX) {
        PyMem_Free(bytes);
        return;
    }
    PyMem_Free(pool[pool_next].bytes);
    pool[pool_next].bytes = bytes;
    pool[pool_next].capacity = capacity;
    pool_next = (pool_next + 1) % POOL_SLOTS;
}

/* Return memory of a capacity that is a power of two; NULL without an exception. */
static char *get_memory(Py_ssize_t capacity)
{
    for (int slot = 0; capacity >= POOLED_MIN && slot < POOL_SLOTS; slot++) {
        if (pool[slot].bytes != NULL && pool[slot].capacity == capacity) {
            char *bytes = pool[slot].bytes;
            pool[slot].bytes = NULL;
            return bytes;
        }
    }
    return PyMem_Malloc((size_t)capacity);
}

static int chunk_buffer(Chunk *self, Py_buffer *view, int flags)
{
    return PyBuffer_FillInfo(view, (PyObject *)self, self->bytes, self->size, 1, flags);
}

static void chunk_dealloc(Chunk *self)
{
    PyTypeObject *type = Py_TYPE((PyObject *)self);
    give_back(self->bytes, self->capacity);
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyType_Slot chunk_slots[] = {
    {Py_tp_doc, "The memory of one column."},
    {Py_tp_dealloc, chunk_dealloc},
    {Py_bf_getbuffer, chunk_buffer},
    {0, NULL},
};

static PyType_Spec chunk_spec = {
    .name = "odradek.kernel.records._columns.Chunk",
    .basicsize = sizeof(Chunk),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = chunk_slots,
};

static PyTypeObject *chunk_type;

/* ------------------------------------------------------------------------------------------------------------- columns */

typedef struct {
    Chunk *chunk; /* NULL until something is put into it */
    Py_ssize_t used;
    Py_ssize_t expected; /* how much the last one of its kind took */
} Room;

/* Make room for more bytes; return 0, or -1 with an exception. */
SELDOM int grow(Room *room, Py_ssize_t more)
{
    Py_ssize_t wanted = room->used + more, capacity = CAPACITY_MIN;
    if (room->chunk != NULL) {
        capacity = room->chunk->capacity * (room->chunk->capacity <= FAST_GROWTH_MAX ? 4 : 2);
    } else {
        if (wanted < room->expected)
            wanted = room->expected;
        room->chunk = PyObject_New(Chunk, chunk_type);
        if (room->chunk == NULL)
            return -1;
        room->chunk->bytes = NULL;
        room->chunk->capacity = room->chunk->size = 0;
    }
    while (capacity < wanted)
        capacity *= 2; /* a column has at most 2 GiB */
    char *bytes = get_memory(capacity);
    if (bytes == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    if (room->used)
        memcpy(bytes, room->chunk->bytes, (size_t)room->used);
    give_back(room->chunk->bytes, room->chunk->capacity);
    room->chunk->bytes = bytes;
    room->chunk->capacity = capacity;
    return 0;
}

/* Return where to put more bytes, which count as used then; NULL with an exception. */
OFTEN char *put(Room *room, Py_ssize_t more)
{
    if ((room->chunk == NULL || more > room->chunk->capacity - room->used) && grow(room, more) < 0)
        return NULL;
    char *at = room->chunk->bytes + room->used;
    room->used += more;
    return at;
}

static inline int put_int32(Room *room, int32_t number)
{
    char *at = put(room, sizeof number);
    if (at == NULL)
        return -1;
    memcpy(at, &number, sizeof number);
    return 0;
}

static inline int put_int64(Room *room, int64_t number)
{
    char *at = put(room, sizeof number);
    if (at == NULL)
        return -1;
    memcpy(at, &number, sizeof number);
    return 0;
}

static void clear_room(Room *room)
{
    Py_CLEAR(room->chunk);
    room->used = 0;
}

/* Return the bytes, which the room has no longer; NULL with an exception. */
static PyObject *take_room(Room *room)
{
    if (room->chunk == NULL && put(room, 0) == NULL)
        return NULL;
    room->chunk->size = room->expected = room->used;
    PyObject *view = PyMemoryView_FromObject((PyObject *)room->chunk);
    clear_room(room);
    return view;
}

/* A bitmap begins with the first null: until then there is none. */
typedef struct {
    Room bits;
    int has_nulls;
} Validity;

static int put_validity(Validity *validity, Py_ssize_t row, int is_valid)
{
    if (!validity->has_nulls) {
        if (is_valid)
            return 0;
        char *before = put(&validity->bits, row / 8 + (row % 8 != 0));
        if (before == NULL)
            return -1;
        memset(before, 0xFF, (size_t)(row / 8));
        if (row % 8)
            before[row / 8] = (char)((1 << (row % 8)) - 1);
        validity->has_nulls = 1;
    }
    if (row % 8 == 0) {
        char *byte = put(&validity->bits, 1);
        if (byte == NULL)
            return -1;
        *byte = 0;
    }
    if (is_valid)
        validity->bits.chunk->bytes[row / 8] |= (char)(1 << (row % 8));
    return 0;
}

static PyObject *take_validity(Validity *validity)
{
    int has_nulls = validity->has_nulls;
    validity->has_nulls = 0;
    return has_nulls ? take_room(&validity->bits) : Py_NewRef(Py_None);
}

typedef struct {
    Room offsets, data;
    Validity validity;
    Py_ssize_t rows;
} Binary;

/* Add a value; null when length is negative. */
OFTEN int put_binary(Binary *column, const uint8_t *value, int64_t length)
{
    if (length > 0) {
        if (length > INT32_MAX - column->data.used) {
            PyErr_SetString(PyExc_ValueError, "more bytes than a column's offsets can tell");
            return -1;
        }
        char *at = put(&column->data, (Py_ssize_t)length);
        if (at == NULL)
            return -1;
        memcpy(at, value, (size_t)length);
    }
    if (column->rows == 0 && put_int32(&column->offsets, 0) < 0)
        return -1;
    if (put_validity(&column->validity, column->rows, length >= 0) < 0)
        return -1;
    column->rows++;
    return put_int32(&column->offsets, (int32_t)column->data.used);
}

static void clear_binary(Binary *column)
{
    clear_room(&column->offsets);
    clear_room(&column->data);
    clear_room(&column->validity.bits);
    column->validity.has_nulls = 0;
    column->rows = 0;
}

static PyObject *take_binary(Binary *column)
{
    if (column->rows == 0 && put_int32(&column->offsets, 0) < 0)
        return NULL;
    column->rows = 0;
    PyObject *validity = take_validity(&column->validity);
    PyObject *offsets = take_room(&column->offsets), *data = take_room(&column->data);
    if (validity == NULL || offsets == NULL || data == NULL) {
        Py_XDECREF(validity);
        Py_XDECREF(offsets);
        Py_XDECREF(data);
        return NULL;
    }
    return Py_BuildValue("(NNN)", validity, offsets, data);
}

/* -------------------------------------------------------------------------------------------------------- the builder */

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

static int refuse(const char *why)
{
    PyErr_SetString(PyExc_ValueError, why);
    return -1;
}

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

static int take_number(PyObject *argument, int64_t *number)
{
    *number = PyLong_AsLongLong(argument);
    return *number == -1 && PyErr_Occurred() ? -1 : 0;
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

/* --------------------------------------------------------------------------------------------------- rows into records */

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

static PyObject *follow_batches(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    (void)module;
    int64_t next_offset, end_offset, position = 0;
    Py_buffer view;
    if (nargs != 3) {
        PyErr_SetString(PyExc_TypeError, "follow_batches takes a run, the next offset and the end");
        return NULL;
    }
    if (take_number(args[1], &next_offset) < 0 || take_number(args[2], &end_offset) < 0 ||
        PyObject_GetBuffer(args[0], &view, PyBUF_SIMPLE) < 0)
        return NULL;
    int has_gaps = 0;
    Header header;
    while (read_header((const uint8_t *)view.buf + position, view.len - position, &header) &&
           header.base_offset >= next_offset && header.next_offset <= end_offset) {
        has_gaps |= header.base_offset != next_offset;
        next_offset = header.next_offset;
        position += header.length;
    }
    PyBuffer_Release(&view);
    return Py_BuildValue("(LLO)", (long long)position, (long long)next_offset, has_gaps ? Py_True : Py_False);
}

static PyObject *checksums(PyObject *module, PyObject *data)
{
    (void)module;
    Py_buffer view;
    if (PyObject_GetBuffer(data, &view, PyBUF_SIMPLE) < 0)
        return NULL;
    uint32_t fast = crc32c(view.buf, (size_t)view.len), slow = ~crc32c_by_table(UINT32_MAX, view.buf, (size_t)view.len);
    PyBuffer_Release(&view);
    return Py_BuildValue("(kk)", (unsigned long)fast, (unsigned long)slow);
}

static PyMethodDef methods[] = {
    {"checksums", checksums, METH_O,
     "checksums(data, /)\n--\n\nReturn the CRC-32C twice, as this processor does it and as any does: for tests."},
    {"encode_rows", (PyCFunction)(void (*)(void))encode_rows, METH_FASTCALL,
     "encode_rows(rows_count, keys, values, timestamps, headers, rows, position, bytes_max, timestamp_ms, /)\n--\n\nWrite records "
     "one after the other, behind the room for a batch's header."},
    {"follow_batches", (PyCFunction)(void (*)(void))follow_batches, METH_FASTCALL,
     "follow_batches(run, next_offset, end_offset, /)\n--\n\nWalk batches that follow each other; see columns.py."},
    {NULL, NULL, 0, NULL},
};

static int fill_module(PyObject *module)
{
    fill_crc32c_table();
    if (chunk_type == NULL)
        chunk_type = (PyTypeObject *)PyType_FromSpec(&chunk_spec);
    if (chunk_type == NULL)
        return -1;
    PyObject *type = PyType_FromModuleAndSpec(module, &builder_spec, NULL);
    if (type == NULL)
        return -1;
    int failed = PyModule_AddType(module, (PyTypeObject *)type);
    Py_DECREF(type);
    return failed;
}

static PyModuleDef_Slot module_slots[] = {
    {Py_mod_exec, fill_module},
    {0, NULL},
};

static struct PyModuleDef module_definition = {
    PyModuleDef_HEAD_INIT, "_columns", "Records as columns, and back; see column_walk.py.", 0, methods, module_slots, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__columns(void)
{
    return PyModuleDef_Init(&module_definition);
}
