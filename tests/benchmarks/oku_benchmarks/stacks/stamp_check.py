"""How soon the arrival server's stamp is there once a client sends: nobody can be judged finer than that."""

import http.client
import time
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from oku_benchmarks.stacks.arrival_target import ArrivalTarget, Manner, open_records_folder
from oku_core.accounting.histogram import find_rank

_REQUESTS = 2_000


class Stamping(msgspec.Struct, frozen=True, kw_only=True):
    """From the beginning of a send() to the stamp, in microseconds.

    Attributes:
        by_kernel: whether the kernel stamps arrivals, or the server itself does.
    """

    p50_us: float
    p99_us: float
    by_kernel: bool


def check_stamps(program: Path, folder: Path) -> Stamping:
    """Send some requests, one after the other, and compare the clocks.

    Args:
        program: the arrival server.
        folder: for files.
    """
    with open_records_folder(folder) as place:
        manner = Manner(requests=_REQUESTS)
        with ArrivalTarget(program, place, manner) as target:
            connection = http.client.HTTPConnection(urlsplit(target.url).netloc)
            sent = []
            for number in range(_REQUESTS):
                connection.putrequest("GET", f"/{number}")
                sent.append(time.time_ns())
                connection.endheaders()
                connection.getresponse().read()
            connection.close()
            waits = sorted(
                record.arrived - before for record, before in zip(target.read_records(), sent, strict=True)
            )
            return Stamping(
                p50_us=round(waits[find_rank(0.5, len(waits)) - 1] / 1e3, 1),
                p99_us=round(waits[find_rank(0.99, len(waits)) - 1] / 1e3, 1),
                by_kernel=target.is_stamped_by_kernel(),
            )
