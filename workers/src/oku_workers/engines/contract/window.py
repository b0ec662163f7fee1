"""How many requests an engine keeps in flight: no more than the run has, or can have connections for."""

from oku_core.process.resources import read_open_files
from oku_core.spec.spec import Engine, Spec

FILES_BESIDE = 64
"""Open files of a worker that are not connections to a target."""


def choose_window(spec: Spec, workers: int = 1) -> int:
    """How many requests of a spec may be in flight here, if so many workers share what they have together.

    What a rate may have in flight by default is no more than the system allows: nobody has asked for more.
    """
    window = max(1, min(spec.find_window(workers), spec.requests))
    return limit_window(window, spec) if spec.is_open and spec.shares_concurrency else window


def count_connections() -> int:
    """How many connections the system allows."""
    return max(1, read_open_files() - FILES_BESIDE)


def limit_window(window: int, spec: Spec) -> int:
    """How many of so many requests may be in flight by the connections that there may be.

    The system allows so many files, and a spec with HTTP/2 may say how many connections there are.
    """
    connections = count_connections()
    if spec.connections is not None:
        connections = min(connections, spec.connections * _count_hosts(spec))
    return min(window, connections * (spec.streams if spec.engine is Engine.NGHTTP2 else 1))


def describe_lowered_window(window: int, wanted: int, spec: Spec) -> str:
    """One line on why fewer requests are in flight than are wanted; empty if they are not fewer."""
    if window == wanted:
        return ""
    why = f"only {read_open_files()} open files are allowed"
    if spec.connections is not None and window == spec.connections * _count_hosts(spec) * spec.streams:
        why = f"the spec has {spec.connections} connections with {spec.streams} streams each"
    return f"{window} requests are in flight, not {wanted}: {why}"


def _count_hosts(spec: Spec) -> int:
    """To how many hosts requests go, each with connections of its own."""
    return max(1, len({(url.scheme, url.authority) for url in spec.list_places()}))
