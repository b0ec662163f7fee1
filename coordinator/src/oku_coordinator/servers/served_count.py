"""Fetches the request counts of a run and the peak memory from Oku's own delay servers.

The sum is valid only if no server is missing. Each server names the store of its counts; the ledger keeps the
stores of a run (`server_watch`). When one of them no longer answers, its counts are lost, and the sum is
unknown.
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
"""Errors of a server that does not answer, or is not one of ours; a timeout is an `OSError`."""


@dataclass(frozen=True)
class Address:
    """The address of one server, and the host name for its requests."""

    url: str
    host: str


class ServerFinder(Protocol):
    """Finds the addresses of the servers."""

    @property
    def is_fixed(self) -> bool:
        """Whether there is one server at each address, so that none can be added."""

    async def find(self) -> Sequence[Address]:
        """The current addresses; `NotFoundError` if they are unknown."""


class _Process(msgspec.Struct):
    pid: int
    peak_rss_mb: float


class ServerCount(msgspec.Struct):
    """The answer of a server about itself and a run.

    Attributes:
        served: requests of the run, over all servers with the same store.
        store: its store; a new one when the count of the run has restarted.
        kept: whether the run's count cannot be displaced by foreign names.
        forgotten: how many other names have lost their counts.
        processes: the processes of the server.
    """

    served: int
    store: str = ""
    kept: bool = True
    forgotten: int = 0
    processes: list[_Process] = []


@dataclass(frozen=True)
class ServedTotal:
    """The sum over the servers."""

    requests: int
    processes: Sequence[ProcessSummary]


class NamedServers:
    """The servers behind URLs: one for an IP address, one for each address of a name.

    Args:
        urls: their URLs. `https` is addressed by its name only, because of certificates.
    """

    def __init__(self, urls: Sequence[str]) -> None:
        self._urls = tuple(url.rstrip("/") for url in urls)
        self.is_fixed = all(map(is_one_server, self._urls))

    async def find(self) -> list[Address]:
        """The current addresses of the servers."""
        return [address for url in self._urls for address in await _resolve(url)]


class ServedCounter:
    """Sums the counts of the servers; the sum of servers that share a store counts once."""

    def __init__(self, servers: ServerFinder, ledger: Ledger) -> None:
        self._servers = servers
        self._ledger = ledger
        self.is_fixed = servers.is_fixed

    async def fetch(self, run: str) -> ServedTotal | None:
        """The requests of a run that the servers received; None if unknown."""
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
        """Make each server keep the count of a run; returns the answers, None if one is missing."""
        return await self._ask_all(run, "announce")

    async def ask(self, run: str) -> list[ServerCount] | None:
        """The answer of each server; None if one is missing."""
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
            _log.warning("the delay servers did not report their counts: %s", text, extra={"run": run})
            return None


def is_one_server(url: str) -> bool:
    """Whether a URL addresses one server: its host is an IP address, or this machine."""
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
    # A server with addresses of both families would be counted twice.
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
