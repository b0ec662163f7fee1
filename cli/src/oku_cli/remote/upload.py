"""Uploads the files of a run before it is submitted; what the coordinator has already is not sent again."""

import asyncio
import os
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

from oku_cli.remote.client import Client, WrongDigestError
from oku_cli.remote.coordinator_ref import UnreachableError
from oku_cli.remote.local_file import LocalFile
from oku_core.errors import UserError

if TYPE_CHECKING:
    from oku_cli.terminal.upload_bar import UploadBar

_PIECE_BYTES = 4 << 20
_PATIENCE_S = 60.0
"""How long a coordinator may be away before the upload is given up; another one goes on where it ended."""
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.2, 5.0


async def upload_files(client: Client, files: Iterable[LocalFile], *, quiet: bool = False) -> None:
    """Upload files, with a progress bar in a terminal unless `quiet`.

    Raises:
        UserError: a file changes meanwhile, or the coordinator does not take it.
        UnreachableError: the coordinator does not answer for long.
    """
    by_digest = {file.reference.digest: file for file in files}
    if not by_digest:
        return
    from oku_cli.terminal.upload_bar import UploadBar  # noqa: PLC0415  # rich takes long to load

    with UploadBar(quiet=quiet) as bar:
        for file in by_digest.values():
            try:
                await _upload(client, file, bar)
            except WrongDigestError:
                # What was here of it is gone now: once more from the beginning, if the file is as it was.
                try:
                    await _upload(client, file, bar)
                except WrongDigestError:
                    raise file.build_change_error() from None


async def _upload(client: Client, file: LocalFile, bar: "UploadBar") -> None:
    reference = file.reference
    answered_at, pause_s = time.monotonic(), _FIRST_PAUSE_S
    offset: int | None = None
    with file.open() as opened:
        while True:
            piece = b""
            if offset is not None:
                piece = await asyncio.to_thread(os.pread, opened, _PIECE_BYTES, offset)
                file.check(opened)
            try:
                if offset is None:
                    stored = await client.fetch_file(file.claim)
                else:
                    stored = await client.send_piece(file.claim, reference.size, offset, piece)
            except UnreachableError:
                if time.monotonic() - answered_at > _PATIENCE_S:
                    raise
                await asyncio.sleep(pause_s)
                offset, pause_s = None, min(pause_s * 2, _LONGEST_PAUSE_S)
                continue
            except UserError as error:
                raise type(error)(f"{file.label}: {error}") from None
            if stored.is_complete:
                bar.show(reference.name, reference.size, reference.size)
                return
            answered_at, pause_s, offset = time.monotonic(), _FIRST_PAUSE_S, stored.received
            bar.show(reference.name, stored.received, reference.size)
