/* Answers of one shape: the same status line, the same headers in the same order, and any values.
 *
 * `engines/httptools/body_size.py` is the same in Python. Servers are not trusted: whatever is read of an answer
 * lies in answer[at] with 0 <= at < size.
 */
#include "speedups.h"

#include <string.h>

enum { FIXED, VALUE, LENGTH, LINE_KINDS }; /* as in body_size.py */

#define MOST_LENGTH_DIGITS 10
#define MOST_CHUNK_DIGITS 8 /* as in body_size.py, so that a size and their sums fit into 64 bits */

static Py_ssize_t
skip_blanks(const char *answer, Py_ssize_t at, Py_ssize_t size)
{
    while (at < size && (answer[at] == ' ' || answer[at] == '\t'))
        at++;
    return at;
}

/* Where the line break behind a value should be; NO_MATCH if it is not a value. */
static Py_ssize_t
find_value_end(const char *answer, Py_ssize_t at, Py_ssize_t size)
{
    const char *value = answer + at, *end = memchr(value, '\r', size - at);
    if (end == NULL || memchr(value, '\n', end - value) != NULL || memchr(value, 0, end - value) != NULL)
        return NO_MATCH;
    return end - answer;
}

/* Where the line break behind a Content-Length should be; NO_MATCH if it is not a number, or has a leading zero. */
static Py_ssize_t
read_length(const char *answer, Py_ssize_t at, Py_ssize_t size, int64_t *length)
{
    Py_ssize_t begin = at = skip_blanks(answer, at, size);
    *length = 0;
    while (at < size && answer[at] >= '0' && answer[at] <= '9') {
        if (at - begin == MOST_LENGTH_DIGITS || (at > begin && answer[begin] == '0'))
            return NO_MATCH;
        *length = *length * 10 + (answer[at++] - '0');
    }
    return at == begin ? NO_MATCH : skip_blanks(answer, at, size);
}

static int
hex_value(char digit)
{
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    digit |= 0x20;
    return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

static int
is_line_break(const char *answer, Py_ssize_t at, Py_ssize_t size)
{
    return size - at >= 2 && answer[at] == '\r' && answer[at + 1] == '\n';
}

/* The size of a chunked body that is all that there is from `at` on; NO_MATCH if it is anything else. */
static Py_ssize_t
measure_chunks(const char *answer, Py_ssize_t at, Py_ssize_t size)
{
    int64_t total = 0;
    for (;;) {
        Py_ssize_t begin = at;
        int64_t chunk = 0;
        int digit;
        while (at < size && (digit = hex_value(answer[at])) >= 0) {
            if (at - begin == MOST_CHUNK_DIGITS)
                return NO_MATCH;
            chunk = chunk * 16 + digit;
            at++;
        }
        if (at == begin || !is_line_break(answer, at, size))
            return NO_MATCH;
        at += 2;
        if (chunk > size - at || !is_line_break(answer, at + (Py_ssize_t)chunk, size))
            return NO_MATCH;
        at += (Py_ssize_t)chunk + 2;
        total += chunk;
        if (chunk == 0)
            return at == size ? (Py_ssize_t)total : NO_MATCH;
    }
}

Py_ssize_t
measure_answer(const Shape *self, const char *answer, Py_ssize_t size)
{
    Py_ssize_t at = 0;
    int64_t length = 0;
    for (const Line *line = self->lines; line < self->lines + self->count; line++) {
        if (size - at < line->size || memcmp(answer + at, line->text, line->size) != 0)
            return NO_MATCH;
        at += line->size;
        if (line->kind == FIXED)
            continue;
        at = line->kind == VALUE ? find_value_end(answer, at, size) : read_length(answer, at, size, &length);
        if (at == NO_MATCH || !is_line_break(answer, at, size))
            return NO_MATCH;
        at += 2;
    }
    if (!is_line_break(answer, at, size))
        return NO_MATCH;
    at += 2;
    if (at > self->longest_head)
        return NO_MATCH;
    if (self->is_chunked)
        return measure_chunks(answer, at, size);
    return size - at == length ? size - at : NO_MATCH;
}

static PyObject *
Shape_measure(PyObject *self, PyObject *answer)
{
    char *bytes;
    Py_ssize_t size;
    if (PyBytes_AsStringAndSize(answer, &bytes, &size) < 0)
        return NULL;
    return PyLong_FromSsize_t(measure_answer((Shape *)self, bytes, size));
}

static void
free_lines(Shape *self)
{
    for (Py_ssize_t i = 0; i < self->count; i++)
        PyMem_Free(self->lines[i].text);
    PyMem_Free(self->lines);
}

static void
Shape_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    free_lines((Shape *)self);
    freefunc release = PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

static int
copy_line(Line *line, PyObject *pair)
{
    const char *text;
    if (!PyTuple_Check(pair)) {
        PyErr_SetString(PyExc_TypeError, "a line is a pair of a kind and a text");
        return -1;
    }
    if (!PyArg_ParseTuple(pair, "iy#", &line->kind, &text, &line->size))
        return -1;
    if (line->kind < 0 || line->kind >= LINE_KINDS) {
        PyErr_Format(PyExc_ValueError, "%d is not a kind of line", line->kind);
        return -1;
    }
    if ((line->text = PyMem_Malloc(line->size ? line->size : 1)) == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    memcpy(line->text, text, line->size);
    return 0;
}

static PyObject *
Shape_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"lines", "status", "longest_head", NULL};
    PyObject *lines;
    Py_ssize_t longest_head;
    int status;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!in", names, &PyTuple_Type, &lines, &status,
                                     &longest_head))
        return NULL;
    allocfunc allocate = PyType_GetSlot(type, Py_tp_alloc);
    Shape *self = (Shape *)allocate(type, 0);
    if (self == NULL)
        return NULL;
    Py_ssize_t count = PyTuple_Size(lines);
    self->longest_head = longest_head;
    self->status = status;
    self->is_chunked = 1;
    if ((self->lines = PyMem_Calloc(count ? count : 1, sizeof(Line))) == NULL) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    for (self->count = 0; self->count < count; self->count++) {
        if (copy_line(&self->lines[self->count], PyTuple_GetItem(lines, self->count)) < 0) {
            Py_DECREF(self);
            return NULL;
        }
        if (self->lines[self->count].kind == LENGTH)
            self->is_chunked = 0;
    }
    return (PyObject *)self;
}

static PyMethodDef Shape_methods[] = {
    {"measure", Shape_measure, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef Shape_members[] = {
    {"status", T_INT, offsetof(Shape, status), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot Shape_slots[] = {
    {Py_tp_new, Shape_new},
    {Py_tp_dealloc, Shape_dealloc},
    {Py_tp_methods, Shape_methods},
    {Py_tp_members, Shape_members},
    {0, NULL},
};

PyType_Spec Shape_spec = {
    .name = "oku_workers.speedups._speedups.Shape",
    .basicsize = sizeof(Shape),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = Shape_slots,
};
