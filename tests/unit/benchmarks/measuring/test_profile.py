import pytest

from oku_benchmarks.measuring.profile import OTHER, build_shares

REPORT = """\
# To display the perf.data header info, please use --header/--header-only options.
#
# Samples: 838  of event 'cpu-clock:uk'
#
# Overhead  Shared Object
# ........  ....................
#
    65.48%  [kernel.kallsyms]
    20.00%  libpython3.11.so.1.0
     6.00%  python3.11
     4.00%  libc.so.6
     2.00%  loop.cpython-311-x86_64-linux-gnu.so
     1.52%  parser.cpython-311-x86_64-linux-gnu.so
     0.50%  [vdso]
     0.50%  _msgspec.cpython-311-x86_64-linux-gnu.so


#
# (Tip: Search options using a keyword: perf report -h <keyword>)
"""


def test_libraries_are_summed_up_by_part() -> None:
    """An interpreter is one part, whether it is a library or linked into the program."""
    assert build_shares(REPORT) == pytest.approx(
        {
            "kernel": 0.6548,
            "Python's interpreter": 0.26,
            "C library": 0.045,
            "uvloop with libuv": 0.02,
            "httptools with llhttp": 0.0152,
            OTHER: 0.005,
        }
    )


def test_a_report_without_samples_has_no_shares() -> None:
    """A process that was not running has no shares."""
    assert build_shares("# Samples: 0\n") == {}
