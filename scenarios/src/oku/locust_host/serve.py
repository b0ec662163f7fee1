"""Runs the locustfile of a worker: the one door of this package, which loads Locust before all else."""

import socket

from oku.host.first_message import prepare_host
from oku_core.user_code.messages import Refused, Start, frame

_NOT_INSTALLED = "Locust is not installed beside this worker: pip install locust"


def serve(connection: socket.socket, slots_file: int) -> None:
    """Run the locustfile of the worker at the other end, until it says so or is gone."""
    start = prepare_host(connection)
    if start is None:
        return
    assert isinstance(start, Start)
    if not _load_locust():
        connection.sendall(frame(Refused(_NOT_INSTALLED)))
        return
    from oku.locust_host.host import run_host  # noqa: PLC0415  # Locust has to be loaded before it

    run_host(connection, slots_file, start)


def _load_locust() -> bool:
    """Load Locust, which patches the standard library; returns whether it is there."""
    try:
        import locust  # noqa: F401, PLC0415  # patches as it is loaded
    except ModuleNotFoundError as error:
        if error.name not in ("locust", "gevent"):
            raise
        return False
    return True
