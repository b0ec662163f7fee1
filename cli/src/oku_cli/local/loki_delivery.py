"""Waits at the end of a local run with Loki for as long as Loki takes lines."""

import asyncio
import math
import time

from oku_cli.remote.client import Client, wait_before_retry
from oku_cli.remote.coordinator_ref import UnreachableError

PATIENCE_S = 5.0
"""How long Loki may take no line before the command stops waiting."""
_LOOK_S = 0.1


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
        await asyncio.sleep(_LOOK_S)


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
