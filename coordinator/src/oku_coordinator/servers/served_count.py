"""Asks Oku's own delay servers how many requests of a run they have counted, and how large they are.

Their sum says something only if nobody is missing. Each server tells in which store it counts; the stores
that were seen with a run are kept in the ledger (`server_watch`), and when one of them does not answer any
more, its counts went with it, and nothing is known.
"""

import asyncio
import ipaddress
import logging
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import urlsplit

import aiohttp
import msgspec

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.tables import run_table
from oku_coordinator.ledger.tables.accounts import work_table
from oku_core.json_reader import JsonDecoder, JsonError
from oku_core.summary.summary import ProcessSummary

_log = logging.getLogger(__name__)

_TIMEOUT = aiohttp.ClientTimeout(total=5)


class NotFoundError(Exception):
    """The servers cannot be located now."""


_NO_ANSWER = (NotFoundError, aiohttp.ClientError, OSError, JsonError)
"""Errors of asking a server that does not answer, or is not one of ours; a timeout is an `OSError`."""


@dataclass(frozen=True)
class Address:
    """Where one server answers, and by which name it is asked."""

    url: str
    host: str


class ServerFinder(Protocol):
    """Knows where the servers are."""

    @property
    def is_fixed(self) -> bool:
        """Whether there is one server at each place, so that none can come in addition."""

    async def find(self) -> Sequence[Address]:
        """Where each of them answers now; `NotFoundError` when that cannot be said."""


class _Process(msgspec.Struct):
    pid: int
    peak_rss_mb: float


class ServerCount(msgspec.Struct):
    """What a server says of itself and a run.

    Attributes:
        served: requests of the run, over all that count in the same store.
        store: where it counts; another one when the count of the run has begun anew.
        kept: whether names that others make up cannot take the place of the run's count.
        forgotten: how many other names have lost their counts.
        processes: of the server.
    """

    served: int
    store: str = ""
    kept: bool = True
    forgotten: int = 0
    processes: list[_Process] = []


@dataclass(frozen=True)
class ServedTotal:
    """What the servers say together."""

    requests: int
    processes: Sequence[ProcessSummary]


class NamedServers:
    """The servers behind URLs: one for an IP address, one for each address of a name.

    Args:
        urls: of them. `https` is asked by its name only, as certificates are.
    """

    def __init__(self, urls: Sequence[str]) -> None:
        self._urls = tuple(url.rstrip("/") for url in urls)
        self.is_fixed = all(map(is_one_server, self._urls))

    async def find(self) -> list[Address]:
        """Where each of them answers now."""
        return [address for url in self._urls for address in await _resolve(url)]


class ServedCounter:
    """Sums what the servers say; those that share their counts tell the same sum, which is taken once."""

    def __init__(self, servers: ServerFinder, ledger: Ledger) -> None:
        self._servers = servers
        self._ledger = ledger
        self.is_fixed = servers.is_fixed

    async def fetch(self, run: str) -> ServedTotal | None:
        """Requests of a run that the servers received; None when that is not known."""
        answers = await self.ask(run)
        if not answers:
            return None
        by_store = {answer.store: answer.served for answer in answers}
        with self._ledger.read() as t:
            seen_at = work_table.fetch_servers(t, run)
        if missing := seen_at.keys() - by_store.keys():
            _log.info(
                "the served count is unknown: %d delay servers are gone, or were not seen for too long",
                len(missing), extra={"run": run},
            )  # fmt: skip
            return None
        processes = [process for answer in answers for process in answer.processes]
        return ServedTotal(
            sum(by_store.values()),
            [
                ProcessSummary(name=f"server-{number}", peak_mb=round(process.peak_rss_mb, 1))
                for number, process in enumerate(processes, 1)
            ],
        )

    async def announce(self, run: str) -> list[ServerCount] | None:
        """Have each server keep the count of a run; what it answers, None when one of them does not."""
        return await self._ask_all(run, "announce")

    async def ask(self, run: str) -> list[ServerCount] | None:
        """What each server answers; None when one of them does not."""
        return await self._ask_all(run, "served")

    async def _ask_all(self, run: str, call: str) -> list[ServerCount] | None:
        with self._ledger.read() as t:
            name = run_table.fetch_run(t, run).count_name
        try:
            addresses = await self._servers.find()
            async with aiohttp.ClientSession(timeout=_TIMEOUT) as session:
                return await asyncio.gather(*(_ask(session, address, call, name) for address in addresses))
        except _NO_ANSWER as error:
            text = str(error) or type(error).__name__
            _log.warning("the delay servers did not say what they served: %s", text, extra={"run": run})
            return None


def is_one_server(url: str) -> bool:
    """Whether a URL stands for one server: its host is an IP address, or this machine."""
    host = urlsplit(url).hostname or ""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return host == "localhost"
    return True


_COUNT: JsonDecoder[ServerCount] = JsonDecoder(ServerCount)


async def _resolve(url: str) -> list[Address]:
    parts = urlsplit(url)
    if is_one_server(url) or parts.scheme != "http":
        return [Address(url, parts.netloc)]
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(parts.hostname, parts.port or 80, type=socket.SOCK_STREAM)
    # A server with addresses of both families would be asked twice.
    families = {family for family, *_ in found}
    family = socket.AF_INET if socket.AF_INET in families else socket.AF_INET6
    ips = dict.fromkeys(str(address[0]) for other, _, _, _, address in found if other == family)
    netlocs = (f"[{ip}]" if ":" in ip else ip for ip in ips)
    return [Address(f"http://{netloc}:{parts.port or 80}{parts.path}", parts.netloc) for netloc in netlocs]


async def _ask(session: aiohttp.ClientSession, address: Address, call: str, name: str) -> ServerCount:
    headers = {"Host": address.host}
    async with session.get(f"{address.url}/-/{call}", params={"run": name}, headers=headers) as response:
        response.raise_for_status()
        answer = _COUNT.decode(await response.read())
    return msgspec.structs.replace(answer, store=answer.store or address.url)
