"""Asks a coordinator all the time whether it is there: how late its event loop can be, seen from outside.

`python -m oku_benchmarks.simulation.probe URL FILE`: one question after the other on one connection, with
pauses of 2 ms. At SIGTERM, FILE gets how many there were and how long the answers took, in ms.
"""

import json
import signal
import sys
import time
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

from oku_core.accounting.histogram import find_rank

_PAUSE_S = 0.002


def main(url: str, file: Path) -> None:
    """Ask until told to end."""
    signal.signal(signal.SIGTERM, _end)
    took_ms: list[float] = []
    connection = HTTPConnection(urlsplit(url).netloc, timeout=60)
    try:
        while True:
            began = time.perf_counter()
            connection.request("GET", "/healthz")
            connection.getresponse().read()
            took_ms.append(1000 * (time.perf_counter() - began))
            time.sleep(_PAUSE_S)
    except KeyboardInterrupt:
        took_ms.sort()
        figures = {
            "questions": len(took_ms),
            "median_ms": round(took_ms[find_rank(0.5, len(took_ms)) - 1], 2),
            "p99_ms": round(took_ms[find_rank(0.99, len(took_ms)) - 1], 2),
            "longest_ms": round(took_ms[-1], 2),
        }
        file.write_text(json.dumps(figures))


def _end(*_: object) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
