/* What the files of the extension share. Each part says where the same is done in Python. */
#ifndef OKU_SPEEDUPS_H
#define OKU_SPEEDUPS_H

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>

#include <stdint.h>
#include <structmember.h>

#define NO_MATCH (-1)

typedef struct {
    char *text;
    Py_ssize_t size;
    int kind;
} Line;

/* Answers that have the same lines; `engines/httptools/body_size.py`. */
typedef struct {
    PyObject_HEAD
    Line *lines;
    Py_ssize_t count, longest_head;
    int is_chunked, status;
} Shape;

/* What an exchange reads of a route; `engines/httptools/exchange.py`. */
typedef struct {
    PyObject_HEAD
    PyObject *shapes, *find_known;
    long long ok_ns;
    char looks_inside;
} RouteBase;

/* Answers that are counted together; `engines/httptools/answer_batch.py`. */
typedef struct AnswerBatch AnswerBatch;

/* What is asked of objects of Python, by name. */
enum {
    ADVANCE,
    BY_TARGET,
    COUNT,
    CURRENT,
    NEXT_COORDINATE,
    STOP,
    TALLY,
    TURNS,
    RECOGNISE,
    READ,
    END,
    COUNT_LATE,
    WRITE_REST,
    NAMES
};

typedef struct {
    PyTypeObject *shape, *route_base, *answer_batch;
    PyObject *names[NAMES];
    PyObject *clock; /* what tells the time in place of the system; NULL unless a test says so */
} State;

extern PyType_Spec Shape_spec, RouteBase_spec, AnswerBatch_spec, Exchange_spec;

/* The size of the body of a whole answer of this shape; NO_MATCH if it is anything else. */
Py_ssize_t measure_answer(const Shape *self, const char *answer, Py_ssize_t size);

/* Take note of an answer that is ok; -1 with an exception if that cannot be done. */
int add_answer(AnswerBatch *self, State *state, PyObject *tally, int status, Py_ssize_t received,
               int64_t latency_us);

/* Functions of the module. */
PyObject *write_now(PyObject *module, PyObject *const *arguments, Py_ssize_t count);
PyObject *record_times(PyObject *module, PyObject *const *arguments, Py_ssize_t count);

/* What all types with references have in common. */
void free_object(PyObject *self, inquiry clear);

#endif
