/* The compiled twin of what the reactor does most: it receives what requests bring that come whole, for all ready sockets in one call,
 * and sends the answers of a turn, with what they hold of cached files, in one call. Whatever is not usual is left, untouched, to the
 * Python it stands beside (endpoint.py): both do the same, tests hold them together.
 *
 * Optional, and for epoll only. The interpreter lock is let go once for all the system calls of a turn; objects and
 * memory that are used meanwhile are held.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <errno.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/sendfile.h>
#include <sys/socket.h>

#define JOBS_MAX 64
#define PIECES_MAX 128
#define SIZE_BYTES 4
#define JOINED_BYTES_MAX 16384   /* what is copied rather than left to a gathered write, or to sendfile */
#define FILE_BYTES_MAX (1 << 20) /* what one connection sends of files before the others go on */

/* Names of attributes: of an endpoint, of a connection, of a piece of a file. */
enum {
    CONNECTION, SOCKET, INTEREST, SLICE,
    SLOTS, OUTGOING, IS_STOPPED, INPUT, EXPECTED, FRAME_LIMIT, IS_DIRTY,
    SIZE, POSITION, IS_CACHED, COUNT,
};
static const char *const NAMES[COUNT] = {
    "connection", "socket", "interest", "_slice",
    "slots", "outgoing", "is_stopped", "_input", "expected_bytes", "frame_limit_bytes", "is_dirty",
    "size_bytes", "position", "is_cached",
};
static PyObject *names[COUNT];
static PyObject *nothing; /* b"" */

/* Return whether an attribute is this very object; -1 with an exception set if it cannot be read. */
static int attribute_is(PyObject *object, int name, PyObject *wanted)
{
    PyObject *value = PyObject_GetAttr(object, names[name]);
    Py_XDECREF(value); /* compared by address only */
    return value == NULL ? -1 : value == wanted;
}

/* Return the length of an attribute that is a list; -1 with an exception set if it is none. */
static Py_ssize_t list_length(PyObject *object, int name)
{
    PyObject *value = PyObject_GetAttr(object, names[name]);
    Py_ssize_t length = value == NULL ? -1 : PyList_Size(value);
    Py_XDECREF(value);
    return length;
}

static long long integer(PyObject *object, int name)
{
    PyObject *value = PyObject_GetAttr(object, names[name]);
    long long number = value == NULL ? -1 : PyLong_AsLongLong(value);
    Py_XDECREF(value);
    return number;
}

/* ------------------------------------------------------------------------------------------------------ receiving */

typedef struct {
    PyObject *event;    /* borrowed of the list of events */
    PyObject *endpoint; /* owned */
    int descriptor;
    int error;
    long long frame_limit;
    Py_ssize_t expected; /* of a large frame, with its size in front; 0 for whatever fits a window */
    Py_ssize_t position;
    Py_ssize_t received; /* NOT_TRIED while there was no room for it */
} Receive;

#define NOT_TRIED (-2)

/* Return 1 if nothing is owed, unsent or begun, so that a window is received into; 0 if not; -1 with an exception set. */
static int takes_window(PyObject *connection, Py_ssize_t window_bytes, Py_ssize_t *expected)
{
    Py_ssize_t length = list_length(connection, SLOTS);
    if (length == 0)
        length = list_length(connection, OUTGOING);
    if (length != 0)
        return length < 0 ? -1 : 0;
    int is_usual = attribute_is(connection, IS_STOPPED, Py_False);
    if (is_usual == 1)
        is_usual = attribute_is(connection, INPUT, Py_None);
    if (is_usual != 1)
        return is_usual;
    *expected = (Py_ssize_t)integer(connection, EXPECTED);
    if (*expected == -1 && PyErr_Occurred())
        return -1;
    /* What is expected to be more than a window has a block of its own: Python's. */
    return *expected == 0 || (*expected > SIZE_BYTES && *expected <= window_bytes);
}

/* Make a job of an event and return 1; 0 if it is left to Python; -1 with an exception set. */
static int plan_receive(PyObject *event, PyObject *endpoints, Py_ssize_t window_bytes, Receive *job)
{
    if (!PyTuple_CheckExact(event) || PyTuple_Size(event) != 2) {
        PyErr_SetString(PyExc_TypeError, "an event is a descriptor and a mask");
        return -1;
    }
    PyObject *endpoint = PyDict_GetItemWithError(endpoints, PyTuple_GetItem(event, 0));
    if (endpoint == NULL)
        return PyErr_Occurred() ? -1 : 0;
    long mask = PyLong_AsLong(PyTuple_GetItem(event, 1));
    if (mask != EPOLLIN)
        return mask == -1 && PyErr_Occurred() ? -1 : 0;
    PyObject *connection = PyObject_GetAttr(endpoint, names[CONNECTION]);
    if (connection == NULL)
        return -1;
    int is_usual = takes_window(connection, window_bytes, &job->expected);
    job->frame_limit = is_usual == 1 ? integer(connection, FRAME_LIMIT) : 0;
    Py_DECREF(connection);
    if (is_usual != 1 || (job->frame_limit == -1 && PyErr_Occurred()))
        return is_usual != 1 ? is_usual : -1;
    job->event = event;
    job->endpoint = Py_NewRef(endpoint);
    job->descriptor = (int)PyLong_AsLong(PyTuple_GetItem(event, 0)); /* it was found: it is a descriptor */
    job->received = NOT_TRIED;
    return 1;
}

/* Receive for a job if there is room for it; return where the free part begins then. */
static Py_ssize_t receive_one(Receive *job, const Py_buffer *arena, Py_ssize_t position, Py_ssize_t window_bytes, Py_ssize_t room_min)
{
    Py_ssize_t room = arena->len - position;
    if (room < (job->expected ? job->expected : room_min))
        return position;
    Py_ssize_t wanted = job->expected ? job->expected : room < window_bytes ? room : window_bytes;
    job->position = position;
    job->received = recv(job->descriptor, (char *)arena->buf + position, wanted, MSG_DONTWAIT);
    job->error = job->received < 0 ? errno : 0;
    /* The next window begins on a cache line of its own. */
    return job->received > 0 ? position + ((job->received + 63) & -64) : position;
}

/* Put those who expect a large frame behind the others: who asks for little does not wait for who sends much. */
static void small_first(Receive *jobs, Py_ssize_t count, Receive **ordered)
{
    for (int is_large = 0; is_large <= 1; is_large++)
        for (Receive *job = jobs; job < jobs + count; job++)
            if ((job->expected > 0) == is_large)
                *ordered++ = job;
}

/* Append what a job received to `taken`: (endpoint, view, whether it is one whole frame that is as large as expected). Return -1 on
 * failure. */
static int report(const Receive *job, PyObject *arena_view, const uint8_t *arena, Py_ssize_t large_bytes, PyObject *taken)
{
    const uint8_t *at = arena + job->position;
    Py_ssize_t start = job->position, end = start + job->received;
    int is_whole = 0;
    if (job->received >= SIZE_BYTES) {
        int64_t size = (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
        int is_expected = job->expected ? job->received == job->expected : size < large_bytes;
        is_whole = size == job->received - SIZE_BYTES && is_expected && size <= job->frame_limit;
    }
    PyObject *view = PySequence_GetSlice(arena_view, is_whole ? start + SIZE_BYTES : start, end);
    PyObject *item = view == NULL ? NULL : PyTuple_Pack(3, job->endpoint, view, is_whole ? Py_True : Py_False);
    int failed = item == NULL || PyList_Append(taken, item) < 0;
    Py_XDECREF(view);
    Py_XDECREF(item);
    return failed ? -1 : 0;
}

/* Sort what came of a job into the lists. Return -1 on failure. */
static int sort_out(const Receive *job, PyObject *arena_view, const Py_buffer *arena, Py_ssize_t large_bytes, PyObject *lists[3])
{
    if (job->received > 0)
        return report(job, arena_view, arena->buf, large_bytes, lists[0]);
    if (job->received == 0 || job->received == NOT_TRIED)
        return PyList_Append(lists[1], job->event); /* the end of the stream is seen again */
    if (job->error == EAGAIN || job->error == EWOULDBLOCK || job->error == EINTR)
        return 0;
    PyObject *item = Py_BuildValue("(Oi)", job->endpoint, job->error); /* an error is told once: it must be kept */
    int failed = item == NULL || PyList_Append(lists[2], item) < 0;
    Py_XDECREF(item);
    return failed ? -1 : 0;
}

static PyObject *receive_events(PyObject *const *args, const Py_ssize_t numbers[4], const Py_buffer *arena, PyObject *lists[3])
{
    Receive jobs[JOBS_MAX], *ordered[JOBS_MAX];
    Py_ssize_t count = 0, position = numbers[0];
    long long total = 0;
    int failed = 0;
    for (Py_ssize_t index = 0; index < PyList_Size(args[0]) && !failed; index++) {
        PyObject *event = PyList_GetItem(args[0], index);
        int is_job = count < JOBS_MAX ? plan_receive(event, args[1], numbers[1], &jobs[count]) : 0;
        if (is_job == 1)
            count++;
        else
            failed = is_job < 0 || PyList_Append(lists[1], event) < 0;
    }
    small_first(jobs, count, ordered);
    if (!failed && count) {
        Py_BEGIN_ALLOW_THREADS
        for (Py_ssize_t index = 0; index < count; index++)
            position = receive_one(ordered[index], arena, position, numbers[1], numbers[2]);
        Py_END_ALLOW_THREADS
    }
    for (Py_ssize_t index = 0; index < count; index++) {
        const Receive *job = ordered[index];
        if (!failed)
            failed = sort_out(job, args[2], arena, numbers[3], lists) < 0;
        if (job->received > 0)
            total += job->received;
        Py_DECREF(job->endpoint);
    }
    return failed ? NULL : Py_BuildValue("(OOOnL)", lists[0], lists[1], lists[2], position, total);
}

static PyObject *receive(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    (void)module;
    if (nargs != 7 || !PyList_CheckExact(args[0]) || !PyDict_CheckExact(args[1])) {
        PyErr_SetString(PyExc_TypeError, "receive takes a list of events, a dict of endpoints, an arena and four numbers");
        return NULL;
    }
    Py_ssize_t numbers[4];
    for (int index = 0; index < 4; index++) {
        numbers[index] = PyLong_AsSsize_t(args[index + 3]);
        if (numbers[index] < 0) {
            if (!PyErr_Occurred())
                PyErr_SetString(PyExc_ValueError, "a negative number of bytes");
            return NULL;
        }
    }
    Py_buffer arena;
    if (PyObject_GetBuffer(args[2], &arena, PyBUF_WRITABLE) < 0)
        return NULL;
    PyObject *lists[3] = {PyList_New(0), PyList_New(0), PyList_New(0)};
    PyObject *result = lists[0] && lists[1] && lists[2] ? receive_events(args, numbers, &arena, lists) : NULL;
    for (int index = 0; index < 3; index++)
        Py_XDECREF(lists[index]);
    PyBuffer_Release(&arena);
    return result;
}

/* -------------------------------------------------------------------------------------------------------- sending */

/* One thing to send: an answer's own memory, or bytes of a file that are in the page cache. */
typedef struct {
    PyObject *slice; /* owned: keeps the file open; NULL for memory */
    Py_buffer memory;
    int file;
    off_t position;
    Py_ssize_t size;
} Piece;

typedef struct {
    PyObject *connection, *outgoing, *driver; /* owned */
    Piece *pieces;
    Py_ssize_t count, size, sent;
    int descriptor;
} Send;

/* Make one piece of several small ones in memory. Return 1 if `outgoing` is one piece now, 0 if not, -1 with an exception set. */
static int join_small(PyObject *outgoing)
{
    Py_ssize_t count = PyList_Size(outgoing), total = 0;
    for (Py_ssize_t index = 0; index < count; index++) {
        PyObject *item = PyList_GetItem(outgoing, index);
        if (!PyByteArray_CheckExact(item) && !PyBytes_CheckExact(item))
            return 0;
        total += PyObject_Size(item);
    }
    if (count <= 1)
        return count == 1;
    if (total > JOINED_BYTES_MAX)
        return 0;
    PyObject *joined = PyObject_CallMethod(nothing, "join", "O", outgoing);
    PyObject *whole = joined == NULL ? NULL : PyList_New(1);
    if (whole == NULL) {
        Py_XDECREF(joined);
        return -1;
    }
    PyList_SetItem(whole, 0, joined);
    int failed = PyList_SetSlice(outgoing, 0, count, whole) < 0;
    Py_DECREF(whole);
    return failed ? -1 : 1;
}

static void release(Piece *pieces, Py_ssize_t count)
{
    for (Piece *piece = pieces; piece < pieces + count; piece++)
        if (piece->slice)
            Py_DECREF(piece->slice);
        else
            PyBuffer_Release(&piece->memory);
}

/* Fill a piece of a file and return 1; 0 if it is small, must be read first, or fails: Python meets that again and closes. */
static int plan_slice(PyObject *item, Piece *piece)
{
    piece->size = (Py_ssize_t)integer(item, SIZE);
    piece->position = piece->size > JOINED_BYTES_MAX ? (off_t)integer(item, POSITION) : -1;
    int is_ready = piece->position >= 0 && attribute_is(item, IS_CACHED, Py_True) == 1;
    piece->file = is_ready ? PyObject_AsFileDescriptor(item) : -1;
    if (piece->file < 0) {
        PyErr_Clear();
        return 0;
    }
    piece->slice = Py_NewRef(item);
    return 1;
}

/* Fill a piece and return 1; 0 if it is left to Python; -1 with an exception set. */
static int plan_piece(PyObject *item, Piece *piece)
{
    if (PyMemoryView_Check(item))
        return 0;
    if (!PyByteArray_CheckExact(item) && !PyBytes_CheckExact(item))
        return plan_slice(item, piece);
    piece->slice = NULL;
    if (PyObject_GetBuffer(item, &piece->memory, PyBUF_SIMPLE) < 0)
        return -1;
    piece->size = piece->memory.len;
    return 1;
}

/* Plan all that is in `outgoing`: one piece of memory, or files with memory around. Return 1; 0, or -1, as above. */
static int plan_pieces(Send *job, Piece *pieces, Py_ssize_t room)
{
    Py_ssize_t wanted = PyList_Size(job->outgoing), file_bytes = 0;
    int is_usual = wanted <= room;
    job->pieces = pieces;
    job->count = job->size = 0;
    while (is_usual == 1 && job->count < wanted) {
        Piece *piece = &pieces[job->count];
        is_usual = plan_piece(PyList_GetItem(job->outgoing, job->count), piece);
        if (is_usual == 1) {
            job->count++;
            job->size += piece->size;
            file_bytes += piece->slice ? piece->size : 0;
        }
    }
    if (is_usual == 1)
        is_usual = file_bytes <= FILE_BYTES_MAX && (file_bytes || wanted == 1);
    if (is_usual != 1)
        release(pieces, job->count);
    return is_usual;
}

/* Return 1 if the driver may send, and has something to send; 0, or -1 with an exception set, if not. */
static int may_send(PyObject *driver, PyObject *connection, PyObject *outgoing)
{
    if (!PyList_CheckExact(outgoing) || PyList_Size(outgoing) == 0)
        return 0;
    int is_usual = attribute_is(connection, IS_STOPPED, Py_False);
    if (is_usual == 1)
        is_usual = attribute_is(driver, SLICE, Py_None); /* else a file's rest is under way */
    if (is_usual != 1)
        return is_usual;
    long long interest = integer(driver, INTEREST);
    return interest == -1 && PyErr_Occurred() ? -1 : interest == EPOLLIN;
}

/* Return 1 and fill the job if the driver has answers to send, all at hand, and nothing else to do; 0, or -1, if not. */
static int plan_send(PyObject *driver, Send *job, Piece *pieces, Py_ssize_t room)
{
    int is_usual = -1;
    PyObject *connection = PyObject_GetAttr(driver, names[CONNECTION]);
    PyObject *outgoing = connection ? PyObject_GetAttr(connection, names[OUTGOING]) : NULL;
    PyObject *socket = outgoing ? PyObject_GetAttr(driver, names[SOCKET]) : NULL;
    if (socket == NULL)
        goto done;
    is_usual = may_send(driver, connection, outgoing);
    if (is_usual != 1)
        goto done;
    job->descriptor = PyObject_AsFileDescriptor(socket);
    is_usual = job->descriptor < 0 || join_small(outgoing) < 0 ? -1 : 1;
    if (is_usual != 1)
        goto done;
    job->outgoing = outgoing;
    is_usual = plan_pieces(job, pieces, room);
    if (is_usual == 1) {
        job->connection = Py_NewRef(connection);
        Py_INCREF(outgoing);
        job->driver = Py_NewRef(driver);
    }
done:
    Py_XDECREF(socket);
    Py_XDECREF(outgoing);
    Py_XDECREF(connection);
    return is_usual;
}

/* Send a piece; return how much of it the socket has taken. */
static Py_ssize_t send_piece(int descriptor, const Piece *piece, int more)
{
    if (piece->slice == NULL) {
        Py_ssize_t sent = send(descriptor, piece->memory.buf, piece->size, MSG_NOSIGNAL | MSG_DONTWAIT | more);
        return sent < 0 ? 0 : sent;
    }
    Py_ssize_t sent = 0, last = 1;
    for (off_t position = piece->position; last > 0 && sent < piece->size; sent += last > 0 ? last : 0)
        last = sendfile(descriptor, piece->file, &position, piece->size - sent);
    return sent;
}

static void send_pieces(Send *job)
{
    job->sent = 0;
    for (Py_ssize_t index = 0; index < job->count; index++) {
        const Piece *piece = &job->pieces[index];
        Py_ssize_t sent = send_piece(job->descriptor, piece, index + 1 < job->count ? MSG_MORE : 0);
        job->sent += sent;
        if (sent < piece->size)
            return;
    }
}

/* Take what was sent off `outgoing`; a connection that got rid of everything is done with. Return -1 on failure. */
static int settle(const Send *job, PyObject *rest)
{
    if (job->sent == job->size)
        return PyList_SetSlice(job->outgoing, 0, job->count, NULL) < 0 ? -1 : PyObject_SetAttr(job->connection, names[IS_DIRTY], Py_False);
    if (job->sent > 0) {
        PyObject *taken = PyObject_CallMethod(job->driver, "take_sent", "n", job->sent);
        if (taken == NULL)
            return -1;
        Py_DECREF(taken);
    }
    return PyList_Append(rest, job->driver); /* no room or an error: Python sees it again */
}

static PyObject *send_answers(PyObject *drivers, PyObject *type, PyObject *rest)
{
    Send jobs[JOBS_MAX];
    Piece pieces[PIECES_MAX];
    Py_ssize_t count = 0, planned = 0;
    long long total = 0;
    int failed = 0;
    for (Py_ssize_t index = 0; index < PyList_Size(drivers) && !failed; index++) {
        PyObject *driver = PyList_GetItem(drivers, index);
        int is_job = count < JOBS_MAX && (PyObject *)Py_TYPE(driver) == type;
        if (is_job)
            is_job = plan_send(driver, &jobs[count], &pieces[planned], PIECES_MAX - planned);
        if (is_job == 1)
            planned += jobs[count++].count;
        else
            failed = is_job < 0 || PyList_Append(rest, driver) < 0;
    }
    if (!failed && count) {
        Py_BEGIN_ALLOW_THREADS
        for (Send *job = jobs; job < jobs + count; job++)
            send_pieces(job);
        Py_END_ALLOW_THREADS
    }
    for (Send *job = jobs; job < jobs + count; job++) {
        if (!failed) {
            total += job->sent;
            failed = settle(job, rest) < 0;
        }
        release(job->pieces, job->count);
        Py_DECREF(job->connection);
        Py_DECREF(job->outgoing);
        Py_DECREF(job->driver);
    }
    return failed ? NULL : Py_BuildValue("(OL)", rest, total);
}

static PyObject *send_small(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    (void)module;
    if (nargs != 2 || !PyList_CheckExact(args[0])) {
        PyErr_SetString(PyExc_TypeError, "send takes a list of drivers and the type of those that it may send for");
        return NULL;
    }
    PyObject *rest = PyList_New(0);
    PyObject *result = rest == NULL ? NULL : send_answers(args[0], args[1], rest);
    Py_XDECREF(rest);
    return result;
}

static PyMethodDef methods[] = {
    {"receive", (PyCFunction)(void (*)(void))receive, METH_FASTCALL,
     "receive(events, endpoints, arena, position, window_bytes, room_min, large_bytes, /)\n--\n\nReceive for endpoints that nothing is "
     "begun or owed of; return what was taken, events left, failures, the arena's free part and the bytes received."},
    {"send", (PyCFunction)(void (*)(void))send_small, METH_FASTCALL,
     "send(drivers, type, /)\n--\n\nSend the answers of drivers that have them at hand, in memory or in cached files, and nothing else to "
     "do; return the other drivers and the bytes sent."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module_definition = {
    PyModuleDef_HEAD_INIT, "_pump", "Receives and sends for a turn of the reactor; see pump.py.", -1, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__pump(void)
{
    for (int index = 0; index < COUNT; index++)
        if (names[index] == NULL && (names[index] = PyUnicode_InternFromString(NAMES[index])) == NULL)
            return NULL;
    if (nothing == NULL && (nothing = PyBytes_FromStringAndSize(NULL, 0)) == NULL)
        return NULL;
    return PyModule_Create(&module_definition);
}
