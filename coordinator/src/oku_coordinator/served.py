"""Asks Oku's own delay servers how many requests of a run they have counted, and how large they are."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass

import aiohttp
import msgspec

from oku_core.summary import ProcessSummary

_log = logging.getLogger(__name__)

_TIMEOUT = aiohttp.ClientTimeout(total=5)


class _Process(msgspec.Struct):
    pid: int
    peak_rss_mb: float


class _Answer(msgspec.Struct):
    served: int
    store: str = ""
    processes: list[_Process] = []


@dataclass(frozen=True)
class Served:
    """What the servers say together."""

    requests: int
    processes: Sequence[ProcessSummary]


class ServedCounter:
    """Sums what the servers say.

    Args:
        server_urls: of the servers; those that share their counts tell the same sum, which is taken once.
    """

    def __init__(self, server_urls: Sequence[str]) -> None:
        self._server_urls = tuple(server_urls)

    async def fetch(self, run: str) -> Served | None:
        """Requests of a run that the servers received; None when one of them does not answer."""
        if not self._server_urls:
            return None
        answers = []
        try:
            async with aiohttp.ClientSession(timeout=_TIMEOUT) as session:
                for url in self._server_urls:
                    async with session.get(f"{url.rstrip('/')}/-/served", params={"run": run}) as response:
                        response.raise_for_status()
                        answers.append(msgspec.json.decode(await response.read(), type=_Answer))
        except (aiohttp.ClientError, TimeoutError, msgspec.MsgspecError, UnicodeDecodeError) as error:
            _log.warning("the delay servers did not say what they served: %s", error)
            return None
        processes = [process for answer in answers for process in answer.processes]
        by_store = {answer.store or str(number): answer.served for number, answer in enumerate(answers)}
        return Served(
            sum(by_store.values()),
            [
                ProcessSummary(name=f"server-{number}", peak_mb=round(process.peak_rss_mb, 1))
                for number, process in enumerate(processes, 1)
            ],
        )
