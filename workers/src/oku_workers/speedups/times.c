/* Counts times in the buckets of a histogram; `executions/distribution.py` is the same in Python. */
#include "speedups.h"

/* As bucket_index() in `oku_core/accounting/histogram.py`. */
static Py_ssize_t
find_bucket(long long time_us, int sub_bucket_bits)
{
    int shift = -sub_bucket_bits;
    for (long long rest = time_us; rest > 0; rest >>= 1)
        shift++;
    return shift > 0 ? ((Py_ssize_t)shift << (sub_bucket_bits - 1)) + (Py_ssize_t)(time_us >> shift)
                     : (Py_ssize_t)time_us;
}

/* counts[bucket] += 1, in a list or a dictionary that gives 0 for what it has not; -1 with an exception. */
static int
count_one(PyObject *counts, Py_ssize_t bucket)
{
    int is_list = PyList_Check(counts), result = -1;
    PyObject *index = NULL, *before, *after;
    if (is_list) {
        before = PyList_GetItem(counts, bucket);
        Py_XINCREF(before);
    }
    else {
        index = PyLong_FromSsize_t(bucket);
        before = index ? PyObject_GetItem(counts, index) : NULL;
    }
    long long count = before ? PyLong_AsLongLong(before) : -1;
    if (!PyErr_Occurred() && (after = PyLong_FromLongLong(count + 1)) != NULL) {
        if (is_list)
            result = PyList_SetItem(counts, bucket, after); /* takes the reference */
        else {
            result = PyObject_SetItem(counts, index, after);
            Py_DECREF(after);
        }
    }
    Py_XDECREF(before);
    Py_XDECREF(index);
    return result;
}

/* record_times(counts, times_us, highest_us, sub_bucket_bits): sum, minimum and maximum of the times. */
PyObject *
record_times(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t count)
{
    if (count != 4 || !PyList_Check(arguments[1])) {
        PyErr_SetString(PyExc_TypeError, "record_times() takes counts, a list of times, and two numbers");
        return NULL;
    }
    PyObject *counts = arguments[0], *times = arguments[1];
    long long highest_us = PyLong_AsLongLong(arguments[2]), sum_us = 0, min_us = highest_us, max_us = 0;
    long bits = PyLong_AsLong(arguments[3]);
    if (!PyErr_Occurred() && (bits < 1 || bits > 32))
        PyErr_SetString(PyExc_ValueError, "sub-buckets have 1 to 32 bits");
    if (PyErr_Occurred())
        return NULL;
    for (Py_ssize_t i = 0; i < PyList_Size(times); i++) {
        long long time_us = PyLong_AsLongLong(PyList_GetItem(times, i));
        if (time_us == -1 && PyErr_Occurred())
            return NULL;
        if (time_us > highest_us)
            time_us = highest_us;
        if (count_one(counts, find_bucket(time_us, (int)bits)) < 0)
            return NULL;
        sum_us += time_us;
        min_us = time_us < min_us ? time_us : min_us;
        max_us = time_us > max_us ? time_us : max_us;
    }
    return Py_BuildValue("LLL", sum_us, min_us, max_us);
}
