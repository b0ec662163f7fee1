/* The two things that the httptools engine does for each request and that are much faster compiled: it
 * recognises the answer, and writes the next request. `speedups.py` chooses between this and the same in Python.
 *
 * Servers are not trusted: whatever is read of an answer lies in answer[at] with 0 <= at < size.
 */
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>

#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

enum { FIXED, VALUE, LENGTH, LINE_KINDS }; /* as in body_size.py */

#define NO_MATCH (-1)
#define MOST_LENGTH_DIGITS 10
#define MOST_CHUNK_DIGITS 8 /* as in body_size.py, so that a size and their sums fit into 64 bits */

typedef struct {
    char *text;
    Py_ssize_t size;
    int kind;
} Line;

typedef struct {
    PyObject_HEAD
    Line *lines;
    Py_ssize_t count, longest_head;
    int is_chunked;
} Pattern;

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

/* The size of the body of a whole answer of this shape; NO_MATCH if it is anything else. */
static Py_ssize_t
measure_answer(const Pattern *self, const char *answer, Py_ssize_t size)
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
Pattern_measure(PyObject *self, PyObject *answer)
{
    char *bytes;
    Py_ssize_t size;
    if (PyBytes_AsStringAndSize(answer, &bytes, &size) < 0)
        return NULL;
    return PyLong_FromSsize_t(measure_answer((Pattern *)self, bytes, size));
}

static void
free_lines(Pattern *self)
{
    for (Py_ssize_t i = 0; i < self->count; i++)
        PyMem_Free(self->lines[i].text);
    PyMem_Free(self->lines);
}

static void
Pattern_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    free_lines((Pattern *)self);
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
Pattern_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"lines", "longest_head", NULL};
    PyObject *lines;
    Py_ssize_t longest_head;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!n", names, &PyTuple_Type, &lines, &longest_head))
        return NULL;
    allocfunc allocate = PyType_GetSlot(type, Py_tp_alloc);
    Pattern *self = (Pattern *)allocate(type, 0);
    if (self == NULL)
        return NULL;
    Py_ssize_t count = PyTuple_Size(lines);
    self->longest_head = longest_head;
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

static PyMethodDef Pattern_methods[] = {
    {"measure", Pattern_measure, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot Pattern_slots[] = {
    {Py_tp_new, Pattern_new},
    {Py_tp_dealloc, Pattern_dealloc},
    {Py_tp_methods, Pattern_methods},
    {0, NULL},
};

static PyType_Spec Pattern_spec = {
    .name = "oku_workers.engines.httptools._speedups.Pattern",
    .basicsize = sizeof(Pattern),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = Pattern_slots,
};

/* As os.write(), but to a socket that never waits. So the lock of the interpreter is kept: other threads get it
 * between events, and to give it away for each request and take it back takes time, too.
 */
static PyObject *
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

static PyMethodDef functions[] = {
    {"write", (PyCFunction)(void (*)(void))write_now, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};

static int
execute(PyObject *module)
{
    PyObject *type = PyType_FromModuleAndSpec(module, &Pattern_spec, NULL);
    if (type == NULL)
        return -1;
    int result = PyModule_AddType(module, (PyTypeObject *)type);
    Py_DECREF(type);
    return result;
}

static PyModuleDef_Slot module_slots[] = {
    {Py_mod_exec, execute},
    {0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_speedups",
    .m_methods = functions,
    .m_slots = module_slots,
};

PyMODINIT_FUNC
PyInit__speedups(void)
{
    return PyModuleDef_Init(&definition);
}
