"""How many requests an engine keeps in flight: no more than the run has, or the system allows files for."""

from oku_core.process.open_files import read_open_files
from oku_core.spec.spec import Spec

FILES_BESIDE = 64
"""Open files of a worker that are not connections to a target."""


def choose_window(spec: Spec) -> int:
    """How many requests of a spec may be in flight here."""
    return max(1, min(_find_wanted(spec), read_open_files() - FILES_BESIDE))


def describe_lowered_window(spec: Spec) -> str:
    """One line on why fewer requests are in flight than the spec wants; empty if they are not fewer."""
    window, wanted = choose_window(spec), _find_wanted(spec)
    if window == wanted:
        return ""
    return f"{window} requests are in flight, not {wanted}: only {read_open_files()} open files are allowed"


def _find_wanted(spec: Spec) -> int:
    return max(1, min(spec.concurrency, spec.requests))
