"""A target of HTTP/2 that hangs up, leaves and refuses, while workers are killed: the account stays exact."""

import asyncio
from collections import Counter

import pytest
from tests.kit.http2.server import Http2Server, StreamExchange
from tests.kit.http2.serving import serving
from tests.kit.runs.account import assert_completed
from tests.kit.runs.local_run import Start, run_oku

pytestmark = pytest.mark.alone

REQUESTS = 15_000
EACH = 150
"""So many requests are taken on a connection, then it ends in one of three ways."""


class Target:
    """Answers after a moment, refuses some requests once, and ends connections.

    Attributes:
        taken: how often each index was looked at.
        refused: those that were not, once.
    """

    def __init__(self) -> None:
        self.taken: Counter[int] = Counter()
        self.refused: set[int] = set()
        self.server = Http2Server(self.script)

    async def script(self, exchange: StreamExchange) -> None:
        """Do what is to be done with a request."""
        index = exchange.index
        if index % 7 == 0 and index not in self.refused:
            self.refused.add(index)
            exchange.refuse()
            return
        self.taken[index] += 1
        if exchange.turn == EACH:
            match self.server.made.index(exchange.connection) % 3:
                case 0:
                    exchange.session.go_away()  # what comes after that is not looked at
                case 1:
                    exchange.hang_up()
                case _:
                    exchange.reset()
        await asyncio.sleep(0.01)
        await exchange.respond(body=b"hi")


def test_a_worker_is_killed_while_connections_end(start: Start) -> None:
    """What was refused is in no bound of what was sent again; what a killed worker had in flight is."""
    target = Target()
    with serving(target.server) as server:
        run = start(
            "run", "--url", f"{server.url}/{{i}}", "--requests", str(REQUESTS), "--timeout", "60s",
            "--workers", "2", "--concurrency", "40", "--streams", "5", "--range-size", "1000",
            "--engine", "nghttp2", "--quiet",
        )  # fmt: skip
        run.wait_for_accounted(REQUESTS // 6)
        paused = run_oku("pause", run.run_id(), "--data-dir", str(run.data_dir), cwd=run.data_dir)
        assert paused.returncode == 0, paused.stderr
        run.process.wait(60)
        before = run.fetch_summary(run.run_id())
        taken_before, refused_before = Counter(target.taken), len(target.refused)

        resumed = start("resume", run.run_id(), "--quiet")
        resumed.wait_for_accounted(before["accounted"] + REQUESTS // 6)
        old_pid = resumed.kill("worker-1")
        resumed.wait_for_restart("worker-1", old_pid)
        summary = resumed.finish()

    # What was on its way to a connection that was reset may not have reached the target.
    assert before["outcomes"]["ok"] <= len(taken_before) <= before["accounted"]
    assert (set(taken_before.values()), before["resent_at_most"]) == ({1}, 0)
    assert refused_before > before["accounted"] / 8

    assert_completed(summary)
    outcomes = {name: count for name, count in summary["outcomes"].items() if count}
    assert set(outcomes) == {"ok", "disconnected"}
    assert outcomes["ok"] <= len(target.taken) <= REQUESTS
    assert target.taken.total() <= REQUESTS + summary["resent_at_most"]
    # Those in flight on a connection that ends, and what follows before the worker knows.
    assert outcomes["disconnected"] <= 2 * 5 * server.connections
    assert server.faults == []
