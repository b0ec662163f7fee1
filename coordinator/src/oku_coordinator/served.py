"""Asks Oku's own delay servers how many requests of a run they have counted."""

import logging
from collections.abc import Sequence

import aiohttp

_log = logging.getLogger(__name__)

_TIMEOUT = aiohttp.ClientTimeout(total=5)


class ServedCounter:
    """Sums what the servers say.

    Args:
        server_urls: one for each server that keeps counts of its own.
    """

    def __init__(self, server_urls: Sequence[str]) -> None:
        self._server_urls = tuple(server_urls)

    async def fetch(self, run: str) -> int | None:
        """Requests of a run that the servers received; None when one of them does not answer."""
        if not self._server_urls:
            return None
        total = 0
        try:
            async with aiohttp.ClientSession(timeout=_TIMEOUT) as session:
                for url in self._server_urls:
                    async with session.get(f"{url.rstrip('/')}/-/served", params={"run": run}) as response:
                        response.raise_for_status()
                        total += int((await response.json())["served"])
        except (aiohttp.ClientError, TimeoutError, KeyError, TypeError, ValueError) as error:
            _log.warning("the delay servers did not say what they served: %s", error)
            return None
        return total
