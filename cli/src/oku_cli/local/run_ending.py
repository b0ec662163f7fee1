"""What a local run leaves when it comes to rest: a report in its data folder, and its lines in Loki."""

import asyncio
import math
import time
from pathlib import Path

from oku_cli.backends.client import Client, wait_before_retry
from oku_cli.backends.coordinator_ref import UnreachableError
from oku_cli.backends.data_dir import DataDir
from oku_cli.backends.ledger_backend import LedgerBackend
from oku_core.process.private_files import make_private_folder, write_private


async def leave_report(data_dir: DataDir, run: str) -> Path:
    """Write the report of a run; return its path under the data folder as the user named it."""
    # A summary is read before a report is opened, so what makes one is loaded after that.
    from oku_cli.report.history_reader import RunHistoryReader  # noqa: PLC0415
    from oku_cli.report.page import build_page  # noqa: PLC0415

    path = data_dir.find_report(run)
    reader = RunHistoryReader()
    async for line in LedgerBackend(data_dir).read_run_history(run):
        reader.take(line)
    make_private_folder(path.parent)
    write_private(path, build_page(reader.finish()))
    return data_dir.path / path.relative_to(data_dir.absolute)


PATIENCE_S = 5.0
"""How long Loki may take no line before the command stops waiting."""
_POLL_S = 0.1


async def wait_for_delivery(client: Client) -> str:
    """Wait until Loki has everything; return a sentence on what it lacks, or an empty text."""
    deadline, before = time.monotonic() + PATIENCE_S, math.inf
    while True:
        try:
            outbox = await client.fetch_outbox()
        except UnreachableError:
            if time.monotonic() > deadline:
                return "what Loki has is not known: the coordinator did not answer"
            await wait_before_retry()
            continue
        if outbox["lines"] < before:
            deadline, before = time.monotonic() + PATIENCE_S, outbox["lines"]
        if not outbox["lines"] or outbox["trouble"] or time.monotonic() > deadline:
            return _describe(**outbox)
        await asyncio.sleep(_POLL_S)


def _describe(*, lines: int, dropped: int, refused: int, trouble: str, **_: object) -> str:
    parts = []
    if lines:
        why = f": {trouble}" if trouble else ""
        parts.append(f"{lines:,} lines wait in the ledger for the next run with --loki{why}")
    if dropped:
        parts.append(
            f"{dropped:,} lines of latencies, workers and coverage were dropped, the outbox was full"
        )
    if refused:
        parts.append(f"{refused:,} lines were refused by Loki")
    return "; ".join(parts)
