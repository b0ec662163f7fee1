"""The port at which workers fetch the files of runs: `GET /files/DIGEST`, with a ticket for that file.

The token of the API is worth nothing here, and a ticket nothing there.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path

from aiohttp import web
from aiohttp.abc import AbstractStreamWriter

from oku_coordinator.api.authentication import RefusedCallers
from oku_coordinator.api.connection_table import ConnectionLimits
from oku_coordinator.files.file_store import FileStore, UnknownFileError
from oku_core.messaging.credentials import TICKET_SCHEME, Credential, CredentialFault, judge_ticket
from oku_core.messaging.signing import Signer
from oku_core.process.clock import Clock
from oku_core.spec.values.file_reference import is_digest

DOWNLOAD_LIMITS = ConnectionLimits(most=256, most_per_address=64)
"""More workers than that try again later."""
_MOST_TRANSFERS = 64
"""At a time; each worker gets its file sooner if not all get theirs at once."""


class _Transfer(web.FileResponse):
    """A file, or the range of it that is asked for; the system copies it, not this process.

    Args:
        path: where it is.
        transfers: how many more there may be.
    """

    def __init__(self, path: Path, transfers: asyncio.Semaphore) -> None:
        super().__init__(path, headers={"Content-Type": "application/octet-stream"})
        self._transfers = transfers

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter | None:
        """Send all of it."""
        async with self._transfers:
            return await super().prepare(request)


UNREADABLE_DATE = "the date in a header cannot be read"


def has_readable_dates(request: web.Request) -> bool:
    """Whether aiohttp can read the dates in a request's conditions; otherwise it fails as it answers."""
    try:
        _ = request.if_modified_since, request.if_unmodified_since, request.if_range
    except OverflowError:  # in the year 99999999999
        return False
    return True


def build_download_api(
    store: FileStore,
    signer: Signer,
    clock: Clock,
    count_refusal: Callable[[Credential, CredentialFault], None],
) -> web.Application:
    """The application.

    Args:
        store: has the files.
        signer: has signed the tickets.
        clock: Unix time, by which they expire.
        count_refusal: takes each call without a valid one.
    """
    api = web.Application()
    refused = RefusedCallers(api, Credential.TICKET, count_refusal)
    transfers = asyncio.Semaphore(_MOST_TRANSFERS)

    async def fetch(request: web.Request) -> web.StreamResponse:
        digest = request.match_info["digest"]
        if refusal := _judge(signer, digest, request.headers.get("Authorization", ""), clock()):
            refused.note(request, refusal)
            return web.Response(status=403, text="the ticket is missing, wrong or expired\n")
        try:
            path = store.find(digest)
        except UnknownFileError as error:
            return web.Response(status=404, text=f"{error}\n")
        if not has_readable_dates(request):
            return web.Response(status=400, text=f"{UNREADABLE_DATE}\n")
        if transfers.locked():
            return web.Response(status=503, text="others fetch files, try again\n")
        return _Transfer(path, transfers)

    api.add_routes([web.get("/files/{digest}", fetch, allow_head=False)])
    return api


def _judge(signer: Signer, digest: str, header: str, now: float) -> CredentialFault | None:
    """What is wrong with a header `Authorization` for the file with this digest; None if nothing is."""
    scheme, _, ticket = header.partition(" ")
    if scheme != TICKET_SCHEME:
        return CredentialFault.MALFORMED if header else CredentialFault.MISSING
    return judge_ticket(signer, digest, ticket, now) if is_digest(digest) else CredentialFault.WRONG
