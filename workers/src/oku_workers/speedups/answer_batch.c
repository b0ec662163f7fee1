/* Answers that are ok are kept until the end of a turn of the event loop, and then counted together.
 *
 * `engines/httptools/answer_batch.py` is what stands in its place in Python.
 */
#include "speedups.h"

enum { GROUPS = 8, MOST_OF_GROUP = 256 };

/* Answers with one status that are counted in one tally; there are none if it has no tally. */
typedef struct {
    PyObject *tally;
    int status;
    Py_ssize_t received, count;
    int64_t latencies_us[MOST_OF_GROUP];
} Group;

struct AnswerBatch {
    PyObject_HEAD
    PyObject *call_soon, *count_group;
    int is_scheduled;
    Group groups[GROUPS];
};

static PyObject *
list_latencies(const Group *group)
{
    PyObject *latencies = PyList_New(group->count);
    for (Py_ssize_t i = 0; latencies != NULL && i < group->count; i++) {
        PyObject *latency = PyLong_FromLongLong(group->latencies_us[i]);
        if (latency == NULL)
            Py_CLEAR(latencies);
        else
            PyList_SetItem(latencies, i, latency);
    }
    return latencies;
}

/* Have the answers of a group counted, which has none from then on; -1 with an exception. */
static int
count_group(AnswerBatch *self, Group *group)
{
    PyObject *status = PyLong_FromLong(group->status), *received = PyLong_FromSsize_t(group->received);
    PyObject *latencies = list_latencies(group), *tally = group->tally, *nothing = NULL;
    if (status && received && latencies) {
        group->tally = NULL;
        nothing =
            PyObject_CallFunctionObjArgs(self->count_group, tally, status, latencies, received, NULL);
        Py_DECREF(tally);
    }
    Py_XDECREF(status);
    Py_XDECREF(received);
    Py_XDECREF(latencies);
    Py_XDECREF(nothing);
    return nothing ? 0 : -1;
}

static int
count_all(AnswerBatch *self)
{
    for (Group *group = self->groups; group < self->groups + GROUPS; group++)
        if (group->tally != NULL && count_group(self, group) < 0)
            return -1;
    return 0;
}

/* A group that has room for such an answer; NULL if there is none. */
static Group *
find_group(AnswerBatch *self, PyObject *tally, int status)
{
    for (Group *group = self->groups; group < self->groups + GROUPS; group++) {
        if (group->tally == tally && group->status == status && group->count < MOST_OF_GROUP)
            return group;
        if (group->tally == NULL) {
            group->tally = Py_NewRef(tally);
            group->status = status;
            group->received = group->count = 0;
            return group;
        }
    }
    return NULL;
}

/* Have the event loop call count() at the end of its turn; -1 with an exception. */
static int
schedule(AnswerBatch *self, State *state)
{
    self->is_scheduled = 1;
    PyObject *count = PyObject_GetAttr((PyObject *)self, state->names[COUNT]);
    PyObject *handle = count ? PyObject_CallFunctionObjArgs(self->call_soon, count, NULL) : NULL;
    Py_XDECREF(count);
    Py_XDECREF(handle);
    if (handle == NULL)
        self->is_scheduled = 0;
    return handle ? 0 : -1;
}

int
add_answer(AnswerBatch *self, State *state, PyObject *tally, int status, Py_ssize_t received,
           int64_t latency_us)
{
    if (!self->is_scheduled && schedule(self, state) < 0)
        return -1;
    Group *group = find_group(self, tally, status);
    if (group == NULL) {
        if (count_all(self) < 0)
            return -1;
        if ((group = find_group(self, tally, status)) == NULL) {
            PyErr_SetString(PyExc_RuntimeError, "answers came while others were counted");
            return -1;
        }
    }
    group->latencies_us[group->count++] = latency_us;
    group->received += received;
    return 0;
}

/* Count what has not been counted. */
static PyObject *
AnswerBatch_count(PyObject *object, PyObject *Py_UNUSED(nothing))
{
    AnswerBatch *self = (AnswerBatch *)object;
    self->is_scheduled = 0;
    if (count_all(self) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *
AnswerBatch_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(kwargs))
{
    PyObject *call_soon, *count_group;
    if (!PyArg_ParseTuple(args, "OO", &call_soon, &count_group))
        return NULL;
    allocfunc allocate = PyType_GetSlot(type, Py_tp_alloc);
    AnswerBatch *self = (AnswerBatch *)allocate(type, 0);
    if (self == NULL)
        return NULL;
    self->call_soon = Py_NewRef(call_soon);
    self->count_group = Py_NewRef(count_group);
    return (PyObject *)self;
}

static int
AnswerBatch_traverse(PyObject *object, visitproc visit, void *arg)
{
    AnswerBatch *self = (AnswerBatch *)object;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->call_soon);
    Py_VISIT(self->count_group);
    for (Group *group = self->groups; group < self->groups + GROUPS; group++)
        Py_VISIT(group->tally);
    return 0;
}

static int
AnswerBatch_clear(PyObject *object)
{
    AnswerBatch *self = (AnswerBatch *)object;
    Py_CLEAR(self->call_soon);
    Py_CLEAR(self->count_group);
    for (Group *group = self->groups; group < self->groups + GROUPS; group++)
        Py_CLEAR(group->tally);
    return 0;
}

static void
AnswerBatch_dealloc(PyObject *self)
{
    free_object(self, AnswerBatch_clear);
}

static PyMethodDef AnswerBatch_methods[] = {
    {"count", AnswerBatch_count, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot AnswerBatch_slots[] = {
    {Py_tp_new, AnswerBatch_new},           {Py_tp_dealloc, AnswerBatch_dealloc},
    {Py_tp_traverse, AnswerBatch_traverse}, {Py_tp_clear, AnswerBatch_clear},
    {Py_tp_methods, AnswerBatch_methods},   {0, NULL},
};

PyType_Spec AnswerBatch_spec = {
    .name = "oku_workers.speedups._speedups.AnswerBatch",
    .basicsize = sizeof(AnswerBatch),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = AnswerBatch_slots,
};
