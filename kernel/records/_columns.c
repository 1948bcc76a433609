/* The compiled twins of column_walk.py: the records of batches copied into columns, and rows of columns into records. The twins
 * give the same answers: tests hold them together. Each direction has a header of its own; here is the module.
 *
 * Optional, like _kernel.c.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

#include "_column_builder.h"
#include "_column_encoder.h"

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
    if (make_chunk_type() < 0)
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
