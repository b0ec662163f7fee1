/* The module: its types, its functions, and the names that they look up. */
#include "speedups.h"

#include <sys/socket.h>

static const char *const NAME_TEXTS[NAMES] = {
    [ADVANCE] = "advance",
    [BY_TARGET] = "by_target",
    [COUNT] = "count",
    [CURRENT] = "current",
    [NEXT_COORDINATE] = "next_coordinate",
    [STOP] = "stop",
    [TALLY] = "tally",
    [TURNS] = "turns",
    [RECOGNISE] = "recognise",
    [READ] = "_read",
    [END] = "_end",
    [COUNT_LATE] = "_count_late",
    [WRITE_REST] = "_write_rest",
};

/* As os.write(), but to a socket that never waits. So the lock of the interpreter is kept: other threads get it
 * between events, and to give it away for each request and take it back takes time, too.
 */
PyObject *
write_now(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t count)
{
    char *bytes;
    Py_ssize_t size;
    if (count != 2) {
        PyErr_SetString(PyExc_TypeError, "write() takes a file and bytes");
        return NULL;
    }
    long file = PyLong_AsLong(arguments[0]);
    if (file == -1 && PyErr_Occurred())
        return NULL;
    if (file != (int)file) {
        PyErr_SetString(PyExc_OverflowError, "no file has so large a number");
        return NULL;
    }
    if (PyBytes_AsStringAndSize(arguments[1], &bytes, &size) < 0)
        return NULL;
    Py_ssize_t written = send((int)file, bytes, size, MSG_DONTWAIT);
    return written < 0 ? PyErr_SetFromErrno(PyExc_OSError) : PyLong_FromSsize_t(written);
}

/* Have answers timed by this clock from now on, which gives nanoseconds; by that of the system with None. */
static PyObject *
use_clock(PyObject *module, PyObject *clock)
{
    State *state = PyModule_GetState(module);
    Py_CLEAR(state->clock);
    if (clock != Py_None)
        state->clock = Py_NewRef(clock);
    Py_RETURN_NONE;
}

void
free_object(PyObject *self, inquiry clear)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    clear(self);
    freefunc release = PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

static PyMethodDef functions[] = {
    {"write", (PyCFunction)(void (*)(void))write_now, METH_FASTCALL, NULL},
    {"record_times", (PyCFunction)(void (*)(void))record_times, METH_FASTCALL, NULL},
    {"use_clock", use_clock, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

/* Add a type to the module, and keep it if there is a place for it; -1 with an exception. */
static int
add_type(PyObject *module, PyType_Spec *spec, PyTypeObject **place)
{
    PyObject *type = PyType_FromModuleAndSpec(module, spec, NULL);
    int result = type ? PyModule_AddType(module, (PyTypeObject *)type) : -1;
    if (result == 0 && place != NULL)
        *place = (PyTypeObject *)Py_NewRef(type);
    Py_XDECREF(type);
    return result;
}

static int
execute(PyObject *module)
{
    State *state = PyModule_GetState(module);
    for (int i = 0; i < NAMES; i++)
        if ((state->names[i] = PyUnicode_InternFromString(NAME_TEXTS[i])) == NULL)
            return -1;
    if (add_type(module, &Shape_spec, &state->shape) < 0 ||
        add_type(module, &RouteBase_spec, &state->route_base) < 0 ||
        add_type(module, &AnswerBatch_spec, &state->answer_batch) < 0)
        return -1;
    return add_type(module, &Exchange_spec, NULL);
}

static int
traverse(PyObject *module, visitproc visit, void *arg)
{
    State *state = PyModule_GetState(module);
    Py_VISIT(state->shape);
    Py_VISIT(state->route_base);
    Py_VISIT(state->answer_batch);
    Py_VISIT(state->clock);
    return 0;
}

static int
clear(PyObject *module)
{
    State *state = PyModule_GetState(module);
    Py_CLEAR(state->shape);
    Py_CLEAR(state->route_base);
    Py_CLEAR(state->answer_batch);
    Py_CLEAR(state->clock);
    for (int i = 0; i < NAMES; i++)
        Py_CLEAR(state->names[i]);
    return 0;
}

static PyModuleDef_Slot module_slots[] = {
    {Py_mod_exec, execute},
    {0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_speedups",
    .m_size = sizeof(State),
    .m_methods = functions,
    .m_slots = module_slots,
    .m_traverse = traverse,
    .m_clear = clear,
};

PyMODINIT_FUNC
PyInit__speedups(void)
{
    return PyModuleDef_Init(&definition);
}
