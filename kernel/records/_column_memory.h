/* Columns while they are filled: memory that grows and is used again, validity bitmaps, binary columns. */
#ifndef ODRADEK_COLUMN_MEMORY_H
#define ODRADEK_COLUMN_MEMORY_H

#include <Python.h>
#include <stdint.h>
#include <string.h>

#include "_walking.h"

#define MICROSECONDS 1000 /* a millisecond */

/* Set a ValueError; return -1. */
static int refuse(const char *why)
{
    PyErr_SetString(PyExc_ValueError, why);
    return -1;
}

/* Set a number from an argument; return 0, or -1 with an exception. */
static int take_number(PyObject *argument, int64_t *number)
{
    *number = PyLong_AsLongLong(argument);
    return *number == -1 && PyErr_Occurred() ? -1 : 0;
}

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

static PyTypeObject *chunk_type; /* made once, for all interpreters */

static int make_chunk_type(void)
{
    if (chunk_type == NULL)
        chunk_type = (PyTypeObject *)PyType_FromSpec(&chunk_spec);
    return chunk_type == NULL ? -1 : 0;
}

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

#endif
