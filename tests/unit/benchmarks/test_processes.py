import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from oku_benchmarks.processes import Look, Observer, Vitals, cut_window, find_peak_mb, find_tree, read_cpu_s
from oku_benchmarks.report import BenchmarkError

FORKS = """
import os, sys, time
def work():
    data = bytearray(b"x" * 40_000_000)
    while time.process_time() < 0.2: pass
    return data
if os.fork() == 0:
    work()
    os._exit(0)
os.wait()
child = os.fork()
kept = work() if child == 0 else None
if child == 0:
    print(os.getpid(), flush=True)
sys.stdin.read()
"""
"""A process that does nothing itself: one child works and ends, the other has worked and has 40 MB."""


@pytest.fixture
def family() -> Iterator[tuple[int, int]]:
    """Such a process, and its living child."""
    with subprocess.Popen(
        [sys.executable, "-c", FORKS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        yield process.pid, int(process.stdout.readline())
        process.kill()


def test_a_process_is_measured_with_all_that_it_has_started(family: tuple[int, int]) -> None:
    """A zygote does nothing; the worker that it has forked does, and so did the one before."""
    parent, child = family
    assert find_tree(parent) == [parent, child]
    assert read_cpu_s(parent) >= 0.35
    look = Observer(lambda: 0, lambda: {"worker": parent}).look()
    assert look.vitals["worker"].memory_mb > 40


def test_what_has_a_name_of_its_own_is_measured_apart(family: tuple[int, int]) -> None:
    """`oku run` has started broker, coordinator and workers, and uses none of their memory itself."""
    parent, child = family
    vitals = Observer(lambda: 0, lambda: {"oku": parent, "worker": child}).look().vitals
    assert vitals["oku"].memory_mb < 40 < vitals["worker"].memory_mb
    assert find_tree(parent, {child}) == [parent]


def test_processes_that_are_gone_are_not_in_a_look() -> None:
    """They are missing, and not 0."""
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    assert set(Observer(lambda: 0, lambda: {"gone": gone.pid, "this": os.getpid()}).look().vitals) == {"this"}


def build_looks(*sent: int) -> list[Look]:
    """A look each second, with 10 ms of processor time and a MB for each request."""
    return [
        Look(at=float(at), sent=count, vitals={"w": Vitals(count / 100, float(count))})
        for at, count in enumerate(sent)
    ]


def test_a_window_is_between_two_shares_of_the_requests() -> None:
    """What is sent before and after it does not count."""
    window = cut_window(build_looks(0, 0, 20, 50, 90, 100, 100))
    assert (window.length_s, window.sent, window.rate_rps) == (2, 70, 35)
    assert window.names == ["w"]
    assert window.measure_share("w") == pytest.approx(0.35)
    assert find_peak_mb(build_looks(0, 7, 3), "w") == 7


def test_a_window_ends_before_a_process_does() -> None:
    """Requests that were counted after the last look at it are not in the window."""
    looks = [*build_looks(0, 20, 60, 80), Look(at=4.0, sent=100, vitals={})]
    assert cut_window(looks).end == looks[3]


def test_a_run_without_requests_has_no_window() -> None:
    """Neither has one whose requests were sent at once."""
    for sent in ((0, 0, 0), (0, 100, 100)):
        with pytest.raises(BenchmarkError):
            cut_window(build_looks(*sent))
