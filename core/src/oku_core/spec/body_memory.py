"""Whether the bodies that a run has in flight fit into the memory of a worker.

A body that all requests share is in memory once. One with a placeholder is made for each request, and stays
in memory until the answer has come.
"""

from oku_core.spec.spec import Spec
from oku_core.spec.values.file_reference import FindFile, find_file_reference
from oku_core.spec.values.quantity import format_bytes
from oku_core.spec.values.template import INDEX_PLACEHOLDER, NAMED_PLACEHOLDER, measure_body, read_body


def find_memory_fault(spec: Spec, in_flight: int, limit_bytes: int, find_file: FindFile) -> str:
    """Say that bodies take more memory than a worker may use; empty if they do not. This may block.

    Values of columns are not counted, because a worker reads them row by row. Each of several targets has its
    share of the requests in flight.

    Args:
        spec: what is sent.
        in_flight: how many requests a worker has in flight at most.
        limit_bytes: the memory that a worker may use; 0 if it is not known.
        find_file: finds bodies that are files.
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
        f"body: each request has its own body, and {in_flight:,} in flight per worker take"
        f" {format_bytes(total_bytes)} of memory, but a worker may use {format_bytes(limit_bytes)}:"
        " lower the concurrency, or send the same body with all requests"
    )


def _weigh(bodies: list[tuple[str, int]]) -> int:
    """The sum of the sizes of bodies, each multiplied by its weight."""
    return sum(_measure(body) * weight for body, weight in bodies)


def _measure(body: str) -> int:
    reference = find_file_reference(body)
    return measure_body(body) if reference is None else reference.size


def _differs(body: str, spec: Spec, find_file: FindFile) -> bool:
    """Whether a body has a placeholder for the index or a column."""
    if (reference := find_file_reference(body)) is not None:
        body = read_body(find_file(reference).read_bytes())
    if INDEX_PLACEHOLDER in body:
        return True
    columns = frozenset(() if spec.data is None else spec.data.columns)
    return bool(columns) and any(found[1] in columns for found in NAMED_PLACEHOLDER.finditer(body))
