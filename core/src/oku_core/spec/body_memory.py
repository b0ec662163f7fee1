"""Whether the bodies that a run has in flight fit into the memory of a worker.

A body that is the same for all requests is in memory once. One with a placeholder is made for each request,
and stays until that has been answered.
"""

from collections.abc import Callable
from pathlib import Path

from oku_core.spec.spec import Spec
from oku_core.spec.values.body_bytes import measure_body, read_body
from oku_core.spec.values.file_reference import FileRef, find_file_reference
from oku_core.spec.values.placeholder import INDEX_PLACEHOLDER, NAMED_PLACEHOLDER
from oku_core.spec.values.quantity import format_bytes

FindFile = Callable[[FileRef], Path]
"""Gives the path of a file of a run; `OSError` if it is not here."""


def find_memory_fault(spec: Spec, in_flight: int, limit_bytes: int, find_file: FindFile) -> str:
    """Say that bodies take more memory than a worker may have; empty if they do not. This may block.

    Values of columns are not counted: a worker knows them row by row. Of several targets, each has its share
    of what is in flight.

    Args:
        spec: what is sent.
        in_flight: how many requests a worker has in flight at most.
        limit_bytes: the memory that a worker may have; 0 if it is not known.
        find_file: has the bodies that are files.
    """
    bodies = [(target.body, target.weight) for target in spec.targets] or [(spec.body, 1)]
    written = [(body, weight) for body, weight in bodies if body is not None]
    whole = sum(weight for _, weight in bodies)
    if not limit_bytes or _weigh(written) * in_flight <= limit_bytes * whole:
        return ""
    own = [(body, weight) for body, weight in written if _differs(body, spec, find_file)]
    total_bytes = _weigh(own) * in_flight // whole
    if total_bytes <= limit_bytes:
        return ""
    return (
        f"body: {in_flight:,} in flight for each worker, with a body of its own for each request, take"
        f" {format_bytes(total_bytes)}, and a worker may have {format_bytes(limit_bytes)}: have fewer in"
        " flight, or send all requests the same body"
    )


def _weigh(bodies: list[tuple[str, int]]) -> int:
    """The bytes of some bodies, each times its weight."""
    return sum(_measure(body) * weight for body, weight in bodies)


def _measure(body: str) -> int:
    reference = find_file_reference(body)
    return measure_body(body) if reference is None else reference.size


def _differs(body: str, spec: Spec, find_file: FindFile) -> bool:
    """Whether it has a placeholder for the index or a column."""
    if (reference := find_file_reference(body)) is not None:
        body = read_body(find_file(reference).read_bytes())
    if INDEX_PLACEHOLDER in body:
        return True
    columns = frozenset(() if spec.data is None else spec.data.columns)
    return bool(columns) and any(found[1] in columns for found in NAMED_PLACEHOLDER.finditer(body))
