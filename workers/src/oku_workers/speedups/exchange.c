/* The hot path of a connection: an answer comes, is recognised and counted, and the next request goes out.
 *
 * `engines/httptools/exchange.py` is the same in Python, but that it counts each answer at once.
 */
#include "speedups.h"

#include <sys/socket.h>
#include <time.h>

enum { SENT = 3 }; /* as in exchange.py */
#define NO_FILE (-1)
#ifdef __APPLE__
#define PYTHON_CLOCK CLOCK_UPTIME_RAW /* as time.monotonic_ns() there */
#else
#define PYTHON_CLOCK CLOCK_MONOTONIC
#endif
#define LONGEST_KNOWN 1024 /* as in response_cache.py */

typedef struct {
    PyObject_HEAD
    PyObject *tally, *feed, *build, *turns, *route, *batch;
    long long coordinate, since_ns, lateness_us;
    int state, file;
} Exchange;

typedef struct {
    int status;
    Py_ssize_t size;
} Answer;

/* The time in nanoseconds; -1 with an exception. */
static int64_t
read_clock(const State *state)
{
    if (state->clock == NULL) {
        struct timespec now;
        clock_gettime(PYTHON_CLOCK, &now);
        return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
    }
    PyObject *told = PyObject_CallNoArgs(state->clock);
    int64_t now_ns = told ? PyLong_AsLongLong(told) : -1;
    Py_XDECREF(told);
    return now_ns;
}

/* Whether it has what a request needs, of the types whose insides are looked at here. */
static int
is_ready(const Exchange *self, const State *state)
{
    PyObject *route = self->route, *batch = self->batch;
    if (self->tally && self->feed && self->build && self->turns && route && batch &&
        PyObject_TypeCheck(batch, state->answer_batch) && PyObject_TypeCheck(route, state->route_base) &&
        ((RouteBase *)route)->find_known && PyTuple_Check(((RouteBase *)route)->shapes))
        return 1;
    PyErr_SetString(PyExc_TypeError, "an exchange lacks something that a request needs");
    return 0;
}

/* Whether an answer is known, by what Python says of it, which is taken; -1 with an exception. */
static int
read_parsed(PyObject *parsed, Answer *answer)
{
    int outcome, is_known = -1;
    PyObject *reason;
    if (parsed == NULL)
        return -1;
    if (parsed == Py_None)
        is_known = 0;
    else if (PyArg_ParseTuple(parsed, "iinO", &outcome, &answer->status, &answer->size, &reason))
        is_known = 1;
    Py_DECREF(parsed);
    return is_known;
}

/* Whether an answer is known to be ok, unless it is late; -1 with an exception. */
static int
recognise(const State *state, RouteBase *route, PyObject *data, Answer *answer)
{
    char *bytes;
    Py_ssize_t size;
    if (PyBytes_AsStringAndSize(data, &bytes, &size) < 0)
        return -1;
    int asks_python = route->looks_inside;
    Py_ssize_t count = route->looks_inside ? 0 : PyTuple_Size(route->shapes);
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *each = PyTuple_GetItem(route->shapes, i);
        if (!PyObject_TypeCheck(each, state->shape))
            asks_python = 1;
        else if ((answer->size = measure_answer((Shape *)each, bytes, size)) != NO_MATCH) {
            answer->status = ((Shape *)each)->status;
            return 1;
        }
    }
    if (route->find_known != Py_None && size <= LONGEST_KNOWN) {
        int is_known = read_parsed(PyObject_CallFunctionObjArgs(route->find_known, data, NULL), answer);
        if (is_known != 0)
            return is_known;
    }
    if (!asks_python)
        return 0;
    PyObject *method = state->names[RECOGNISE];
    return read_parsed(PyObject_CallMethodObjArgs((PyObject *)route, method, data, NULL), answer);
}

/* Give a place another reference, which it takes. */
static void
put(PyObject **place, PyObject *value)
{
    PyObject *before = *place;
    *place = value;
    Py_XDECREF(before);
}

/* The item of a sequence whose turn it is. */
static PyObject *
pick(PyObject *sequence, long long index)
{
    Py_ssize_t size = PySequence_Size(sequence);
    if (size == 0)
        PyErr_SetString(PyExc_ValueError, "nothing has a turn");
    return size <= 0 ? NULL : PySequence_GetItem(sequence, (Py_ssize_t)(index % size));
}

/* The tally that counts a request; NULL with an exception. */
static PyObject *
find_tally(const State *state, PyObject *execution, long long index, int has_turns)
{
    PyObject *tally = PyObject_GetAttr(execution, state->names[TALLY]);
    PyObject *turns = has_turns && tally ? PyObject_GetAttr(execution, state->names[TURNS]) : NULL;
    if (turns != NULL && turns != Py_None) {
        PyObject *target = pick(turns, index), *tallies = PyObject_GetAttr(tally, state->names[BY_TARGET]);
        put(&tally, target && tallies ? PyObject_GetItem(tallies, target) : NULL);
        Py_XDECREF(target);
        Py_XDECREF(tallies);
    }
    else if (has_turns && turns == NULL)
        Py_CLEAR(tally);
    Py_XDECREF(turns);
    return tally;
}

/* Take the coordinate that comes next in an execution; -1 with an exception. */
static int
advance(const State *state, PyObject *feed, PyObject *execution, long long coordinate)
{
    PyObject *next = PyLong_FromLongLong(coordinate + 1), *nothing = NULL;
    PyObject *stop = next ? PyObject_GetAttr(execution, state->names[STOP]) : NULL;
    int is_last = -1;
    if (stop && PyObject_SetAttr(execution, state->names[NEXT_COORDINATE], next) == 0)
        is_last = PyObject_RichCompareBool(next, stop, Py_EQ);
    Py_XDECREF(next);
    Py_XDECREF(stop);
    if (is_last <= 0)
        return is_last;
    nothing = PyObject_CallMethodObjArgs(feed, state->names[ADVANCE], NULL);
    Py_XDECREF(nothing);
    return nothing ? 0 : -1;
}

/* Send at once what the socket takes, and leave the rest to Python. */
static PyObject *
send_request(Exchange *self, const State *state, PyObject *request)
{
    char *bytes;
    Py_ssize_t size, sent = 0;
    if (PyBytes_AsStringAndSize(request, &bytes, &size) < 0)
        return NULL;
    if (self->file != NO_FILE && (sent = send(self->file, bytes, size, MSG_DONTWAIT)) < 0)
        sent = 0; /* the transport will meet the error, too, and report it */
    if (sent == size)
        Py_RETURN_NONE;
    PyObject *count = PyLong_FromSsize_t(sent), *method = state->names[WRITE_REST];
    PyObject *nothing =
        count ? PyObject_CallMethodObjArgs((PyObject *)self, method, request, count, NULL) : NULL;
    Py_XDECREF(count);
    return nothing;
}

/* Call a method of Python with what an answer is and a time. */
static PyObject *
tell(Exchange *self, PyObject *method, const Answer *answer, int64_t time_ns)
{
    PyObject *status = PyLong_FromLong(answer->status), *size = PyLong_FromSsize_t(answer->size);
    PyObject *time = PyLong_FromLongLong(time_ns), *nothing = NULL;
    if (status && size && time)
        nothing = PyObject_CallMethodObjArgs((PyObject *)self, method, status, size, time, NULL);
    Py_XDECREF(status);
    Py_XDECREF(size);
    Py_XDECREF(time);
    return nothing;
}

/* Count the answer to the request in flight; -1 with an exception. */
static int
count_answer(Exchange *self, State *state, const Answer *answer, int64_t latency_ns)
{
    if (latency_ns <= ((RouteBase *)self->route)->ok_ns)
        return add_answer((AnswerBatch *)self->batch, state, self->tally, answer->status, answer->size,
                          latency_ns / 1000);
    PyObject *nothing = tell(self, state->names[COUNT_LATE], answer, latency_ns);
    Py_XDECREF(nothing);
    return nothing ? 0 : -1;
}

/* Count the answer to the request in flight, and have the next one of an execution in flight; -1 with an exception.
 * All that may fail for want of something comes before the answer is counted.
 */
static int
take(Exchange *self, State *state, const Answer *answer, PyObject *execution, PyObject *coordinate,
     int64_t now_ns)
{
    long long index = PyLong_AsLongLong(coordinate);
    if (index == -1 && PyErr_Occurred())
        return -1;
    int has_turns = self->turns != Py_None;
    PyObject *tally = find_tally(state, execution, index, has_turns);
    PyObject *route = has_turns && tally ? pick(self->turns, index) : NULL;
    if (tally == NULL || (has_turns && route == NULL) ||
        count_answer(self, state, answer, now_ns - self->since_ns) < 0) {
        Py_XDECREF(tally);
        Py_XDECREF(route);
        return -1;
    }
    put(&self->tally, tally);
    if (has_turns)
        put(&self->route, route);
    self->coordinate = index;
    self->since_ns = now_ns;
    return advance(state, self->feed, execution, index);
}

/* An answer is known: count it, and send what follows. */
static PyObject *
go_on(Exchange *self, State *state, const Answer *answer)
{
    PyObject *coordinate = NULL, *request = NULL, *nothing = NULL, *build = Py_NewRef(self->build);
    PyObject *execution = PyObject_GetAttr(self->feed, state->names[CURRENT]);
    int64_t now_ns = execution ? read_clock(state) : -1;
    if (now_ns == -1 && PyErr_Occurred())
        goto done;
    if (execution != Py_None && build != Py_None) {
        if ((coordinate = PyObject_GetAttr(execution, state->names[NEXT_COORDINATE])) == NULL ||
            (request = PyObject_CallFunctionObjArgs(build, coordinate, NULL)) == NULL)
            goto done;
    }
    Py_ssize_t size = request ? PyBytes_Size(request) : 0;
    if (size == 0)
        nothing = tell(self, state->names[END], answer, now_ns);
    else if (size > 0 && take(self, state, answer, execution, coordinate, now_ns) == 0)
        nothing = send_request(self, state, request);
done:
    Py_DECREF(build);
    Py_XDECREF(execution);
    Py_XDECREF(coordinate);
    Py_XDECREF(request);
    return nothing;
}

/* A piece of an answer has come, mostly the whole of it. */
static PyObject *
Exchange_data_received(PyObject *object, PyTypeObject *type, PyObject *const *arguments, Py_ssize_t count,
                       PyObject *names)
{
    Exchange *self = (Exchange *)object;
    State *state = PyType_GetModuleState(type);
    Answer answer;
    if (count != 1 || names != NULL) {
        PyErr_SetString(PyExc_TypeError, "data_received() takes the data");
        return NULL;
    }
    if (self->state == SENT) {
        if (!is_ready(self, state))
            return NULL;
        int is_known = recognise(state, (RouteBase *)self->route, arguments[0], &answer);
        if (is_known < 0)
            return NULL;
        if (is_known)
            return go_on(self, state, &answer);
    }
    return PyObject_CallMethodObjArgs(object, state->names[READ], arguments[0], NULL);
}

static PyObject *
Exchange_new(PyTypeObject *type, PyObject *Py_UNUSED(args), PyObject *Py_UNUSED(kwargs))
{
    allocfunc allocate = PyType_GetSlot(type, Py_tp_alloc);
    Exchange *self = (Exchange *)allocate(type, 0);
    if (self != NULL)
        self->tally = self->feed = self->build = self->turns = self->route = self->batch = Py_None;
    for (int i = 0; self != NULL && i < 6; i++)
        Py_INCREF(Py_None);
    return (PyObject *)self;
}

static int
Exchange_traverse(PyObject *object, visitproc visit, void *arg)
{
    Exchange *self = (Exchange *)object;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->tally);
    Py_VISIT(self->feed);
    Py_VISIT(self->build);
    Py_VISIT(self->turns);
    Py_VISIT(self->route);
    Py_VISIT(self->batch);
    return 0;
}

static int
Exchange_clear(PyObject *object)
{
    Exchange *self = (Exchange *)object;
    Py_CLEAR(self->tally);
    Py_CLEAR(self->feed);
    Py_CLEAR(self->build);
    Py_CLEAR(self->turns);
    Py_CLEAR(self->route);
    Py_CLEAR(self->batch);
    return 0;
}

static void
Exchange_dealloc(PyObject *self)
{
    free_object(self, Exchange_clear);
}

static PyMethodDef Exchange_methods[] = {
    {"data_received", (PyCFunction)(void (*)(void))Exchange_data_received,
     METH_METHOD | METH_FASTCALL | METH_KEYWORDS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef Exchange_members[] = {
    {"tally", T_OBJECT, offsetof(Exchange, tally), 0, NULL},
    {"_feed", T_OBJECT, offsetof(Exchange, feed), 0, NULL},
    {"_build", T_OBJECT, offsetof(Exchange, build), 0, NULL},
    {"_turns", T_OBJECT, offsetof(Exchange, turns), 0, NULL},
    {"_route", T_OBJECT, offsetof(Exchange, route), 0, NULL},
    {"_batch", T_OBJECT, offsetof(Exchange, batch), 0, NULL},
    {"coordinate", T_LONGLONG, offsetof(Exchange, coordinate), 0, NULL},
    {"since_ns", T_LONGLONG, offsetof(Exchange, since_ns), 0, NULL},
    {"lateness_us", T_LONGLONG, offsetof(Exchange, lateness_us), 0, NULL},
    {"_state", T_INT, offsetof(Exchange, state), 0, NULL},
    {"_file", T_INT, offsetof(Exchange, file), 0, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot Exchange_slots[] = {
    {Py_tp_new, Exchange_new},
    {Py_tp_dealloc, Exchange_dealloc},
    {Py_tp_traverse, Exchange_traverse},
    {Py_tp_clear, Exchange_clear},
    {Py_tp_methods, Exchange_methods},
    {Py_tp_members, Exchange_members},
    {0, NULL},
};

PyType_Spec Exchange_spec = {
    .name = "oku_workers.speedups._speedups.Exchange",
    .basicsize = sizeof(Exchange),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .slots = Exchange_slots,
};

static int
RouteBase_traverse(PyObject *object, visitproc visit, void *arg)
{
    RouteBase *self = (RouteBase *)object;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->shapes);
    Py_VISIT(self->find_known);
    return 0;
}

static int
RouteBase_clear(PyObject *object)
{
    RouteBase *self = (RouteBase *)object;
    Py_CLEAR(self->shapes);
    Py_CLEAR(self->find_known);
    return 0;
}

static void
RouteBase_dealloc(PyObject *self)
{
    free_object(self, RouteBase_clear);
}

static PyMemberDef RouteBase_members[] = {
    {"shapes", T_OBJECT, offsetof(RouteBase, shapes), 0, NULL},
    {"find_known", T_OBJECT, offsetof(RouteBase, find_known), 0, NULL},
    {"ok_ns", T_LONGLONG, offsetof(RouteBase, ok_ns), 0, NULL},
    {"looks_inside", T_BOOL, offsetof(RouteBase, looks_inside), 0, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot RouteBase_slots[] = {
    {Py_tp_dealloc, RouteBase_dealloc},
    {Py_tp_traverse, RouteBase_traverse},
    {Py_tp_clear, RouteBase_clear},
    {Py_tp_members, RouteBase_members},
    {0, NULL},
};

PyType_Spec RouteBase_spec = {
    .name = "oku_workers.speedups._speedups.RouteBase",
    .basicsize = sizeof(RouteBase),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .slots = RouteBase_slots,
};
