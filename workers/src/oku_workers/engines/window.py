"""How many requests an engine keeps in flight: no more than the run has, or the system allows files for."""

from oku_core.process.open_files import read_open_files
from oku_core.spec.spec import Spec

FILES_BESIDE = 64
"""Open files of a worker that are not connections to a target."""


def choose_window(spec: Spec, workers: int = 1) -> int:
    """How many requests of a spec may be in flight here, if so many workers share what they have together.

    What a rate may have in flight by default is no more than the system allows: nobody has asked for more.
    """
    window = max(1, min(spec.find_window(workers), spec.requests))
    return limit_window(window, spec) if spec.is_open and spec.shares_concurrency else window


def limit_window(window: int, spec: Spec) -> int:
    """How many of so many requests may be in flight by the limits of the system: a connection is a file."""
    streams = spec.streams if spec.http2 else 1
    return min(window, max(1, read_open_files() - FILES_BESIDE) * streams)


def describe_lowered_window(window: int, wanted: int) -> str:
    """One line on why fewer requests are in flight than are wanted; empty if they are not fewer."""
    if window == wanted:
        return ""
    return f"{window} requests are in flight, not {wanted}: only {read_open_files()} open files are allowed"
