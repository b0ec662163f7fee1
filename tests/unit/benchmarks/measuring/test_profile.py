import pytest

from oku_benchmarks.measuring.profile import OTHER, build_shares

REPORT = """\
# To display the perf.data header info, please use --header/--header-only options.
#
# Samples: 838  of event 'cpu-clock:uk'
#
# Overhead  Shared Object                             Symbol
# ........  ........................................  ............................
#
    65.48%  [kernel.kallsyms]                         [k] finish_task_switch.isra.0
    20.00%  libpython3.11.so.1.0                      [.] _PyEval_EvalFrameDefault
     5.00%  python3.11                                [.] 0x00000000001a2b3c
     1.00%  libpython3.11.so.1.0                      [.] sre_ucs1_match
     3.00%  libc.so.6                                 [.] __memmove_avx_unaligned_erms
     1.00%  libcrypto.so.3                            [.] EVP_EncryptUpdate
     2.00%  loop.cpython-311-x86_64-linux-gnu.so      [.] uv__io_poll
     1.52%  parser.cpython-311-x86_64-linux-gnu.so    [.] llhttp__internal__run
     0.20%  _core.cpython-311-x86_64-linux-gnu.so     [.] nghttp2_session_mem_recv
     0.10%  libnghttp2.so.14.24.1                     [.] nghttp2_session_mem_recv
     0.50%  [vdso]                                    [.] __vdso_clock_gettime
     0.70%  _speedups.abi3.so                         [.] Exchange_data_received
     0.50%  _msgspec.cpython-311-x86_64-linux-gnu.so  [.] mpack_encode


#
# (Tip: Search options using a keyword: perf report -h <keyword>)
"""


def test_functions_are_summed_up_by_part() -> None:
    """An interpreter is one part, whether it is a library or linked into the program, but for expressions."""
    assert build_shares(REPORT) == pytest.approx(
        {
            "kernel": 0.6548,
            "Python's interpreter": 0.25,
            "regular expressions": 0.01,
            "C library": 0.035,
            "OpenSSL": 0.01,
            "uvloop with libuv": 0.02,
            "httptools with llhttp": 0.0152,
            "libnghttp2 and ngh2": 0.003,
            "extension": 0.007,
            OTHER: 0.005,
        }
    )


def test_a_report_without_samples_has_no_shares() -> None:
    """A process that was not running has no shares."""
    assert build_shares("# Samples: 0\n") == {}
