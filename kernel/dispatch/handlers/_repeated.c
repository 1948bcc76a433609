/* The compiled twin of one function of repeated_produce.py: finds what a Produce repeats, and where its records lie.
 *
 * Optional: without a compiler the package installs all the same and Python does the work. A test holds the twins together.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

#define CLIENT_ID_SIZE 8 /* where a header's client id begins, its size in front */
#define HEADER_BYTES 11  /* how long a flexible header without tagged fields is, but for the client id */
#define NAME 8           /* where the topic begins, from the body's beginning */
#define AFTER_NAME 5     /* the number of partitions, and an index */
#define TOPIC_ID_BYTES 16
#define VARINT_BYTES_MAX 5
#define NO_TAGS_BYTES 3

/* Find where the records lie; return where they begin, or -1 if this layout is none of those that are known. */
static Py_ssize_t find_records(const uint8_t *frame, Py_ssize_t size, int has_topic_id, Py_ssize_t client_id_size, Py_ssize_t *end)
{
    Py_ssize_t name = HEADER_BYTES + (client_id_size > 0 ? client_id_size : 0) + NAME;
    if (name >= size)
        return -1;
    *end = name + (has_topic_id ? TOPIC_ID_BYTES : frame[name]) + AFTER_NAME;
    uint64_t length = 0;
    Py_ssize_t at = *end;
    for (int shift = 0;; shift += 7) {
        if (at >= size || shift == 7 * VARINT_BYTES_MAX)
            return -1;
        uint8_t byte = frame[at++];
        length |= (uint64_t)(byte & 0x7F) << shift;
        if (byte < 0x80)
            break;
    }
    /* One more than the length of the records, and three empty lists of tagged fields behind them. */
    if (!length || (uint64_t)(size - at) != length - 1 + NO_TAGS_BYTES)
        return -1;
    const uint8_t *tags = frame + size - NO_TAGS_BYTES;
    return tags[0] || tags[1] || tags[2] ? -1 : at;
}

static PyObject *find_repeated(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    (void)module;
    if (nargs != 4 || !PyDict_CheckExact(args[0])) {
        PyErr_SetString(PyExc_TypeError, "find_repeated takes a dict, frame, has_topic_id, client_id_size");
        return NULL;
    }
    Py_ssize_t client_id_size = PyLong_AsSsize_t(args[3]);
    if (client_id_size == -1 && PyErr_Occurred())
        return NULL;
    Py_buffer view;
    if (PyObject_GetBuffer(args[1], &view, PyBUF_SIMPLE) < 0)
        return NULL;
    Py_ssize_t end = 0, size = view.len;
    Py_ssize_t start = find_records(view.buf, size, args[2] == Py_True, client_id_size, &end);
    PyObject *key = start < 0 ? NULL : PyBytes_FromStringAndSize((const char *)view.buf + CLIENT_ID_SIZE, end - CLIENT_ID_SIZE);
    PyBuffer_Release(&view);
    if (start < 0)
        Py_RETURN_NONE;
    PyObject *known = key == NULL ? NULL : PyDict_GetItemWithError(args[0], key); /* borrowed */
    Py_XDECREF(key);
    if (known == NULL) {
        if (PyErr_Occurred())
            return NULL;
        Py_RETURN_NONE;
    }
    Py_INCREF(known);
    PyObject *records = PySequence_GetSlice(args[1], start, size - NO_TAGS_BYTES);
    PyObject *found = records == NULL ? NULL : PyTuple_Pack(2, known, records);
    Py_XDECREF(records);
    Py_DECREF(known);
    return found;
}

static PyMethodDef methods[] = {
    {"find_repeated", (PyCFunction)(void (*)(void))find_repeated, METH_FASTCALL,
     "find_repeated(known, frame, has_topic_id, client_id_size, /)\n--\n\nReturn what is known of a Produce by the bytes before its "
     "records, and its records; None if it is not known, or of another layout."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module_definition = {
    PyModuleDef_HEAD_INIT, "_repeated", "Recognises repeated requests; see repeated_produce.py.", 0, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__repeated(void)
{
    return PyModuleDef_Init(&module_definition);
}
