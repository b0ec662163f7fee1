"""Runs with rates, stages and durations, from the command line to the target: what they send, and when."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import pytest
from tests.kit.runs.account import assert_completed, list_flags
from tests.kit.runs.standing_stack import StandingStack, run_standing_stack
from tests.kit.servers.arrival_target import ArrivalTarget, run_arrival_target

from oku_core.spec.spec import HTTP1_ENGINES, Engine

WORKERS = 2
SLACK_S = 5.0
"""By so much a run may be longer than its plan on a busy machine."""
LATE = ("--late", "10s")
"""On a busy machine, nothing is so late that it is not sent."""
BUSY_MS = 200
"""By so much one moment may be later."""


Summary = dict[str, Any]
Played = tuple[Summary, ArrivalTarget]
Play = Callable[..., Summary]
"""Carries out a run with these flags."""
Watch = Callable[..., Played]


@pytest.fixture(scope="module")
def stacks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[Engine, StandingStack]]:
    """Two workers and a delay server for each engine, for all tests."""
    with ExitStack() as stack:
        yield {
            engine: stack.enter_context(run_standing_stack(tmp_path_factory.mktemp(engine), WORKERS))
            for engine in HTTP1_ENGINES
        }


@pytest.fixture(scope="module")
def started(stacks: dict[Engine, StandingStack]) -> Iterator[Callable[..., dict[Engine, "Future[Played]"]]]:
    """Starts a run with each engine, beside each other: they mostly wait. The same flags start it once."""
    runs: dict[tuple[object, ...], dict[Engine, Future[Played]]] = {}

    def run(engine: Engine, flags: tuple[str, ...], target_delay_s: float | None) -> Played:
        with run_arrival_target(target_delay_s or 0.0) as target:
            where = () if target_delay_s is None else ("--url", target.url)
            return stacks[engine].run("--engine", engine, *flags, *where), target

    with ThreadPoolExecutor(len(stacks)) as pool:

        def start(*flags: str, target_delay_s: float | None = None) -> dict[Engine, "Future[Played]"]:
            key = (*flags, target_delay_s)
            if key not in runs:
                runs[key] = {engine: pool.submit(run, engine, flags, target_delay_s) for engine in stacks}
            return runs[key]

        yield start


@pytest.fixture
def play(started: Callable[..., dict[Engine, "Future[Played]"]], engine: Engine) -> Play:
    """Carries out a run with the engine of the test against the delay server."""
    return lambda *flags: started(*flags)[engine].result()[0]


@pytest.fixture
def watch(started: Callable[..., dict[Engine, "Future[Played]"]], engine: Engine) -> Watch:
    """The same against a target that sees when requests come, and over which connections."""
    return lambda *flags, delay_s=0.0: started(*flags, target_delay_s=delay_s)[engine].result()


def assert_all_ok(summary: Summary, requests: int) -> None:
    """All were sent once and answered well, as the delay server says as well."""
    assert_completed(summary)
    assert {name: count for name, count in summary["outcomes"].items() if count} == {"ok": requests}
    assert summary["servers"] == {"served": requests}
    assert summary["resent_at_most"] == 0


def list_phases(summary: Summary) -> dict[str, int]:
    """How many requests each phase accounts for, whose outcomes are together those of the run."""
    for name, count in summary["outcomes"].items():
        assert sum(phase["outcomes"][name] for phase in summary["phases"]) == count
    for phase in summary["phases"]:
        assert sum(phase["outcomes"].values()) == phase["requests"]
    return {phase["name"]: phase["requests"] for phase in summary["phases"]}


def assert_lasts(summary: Summary, seconds: float) -> None:
    """The run takes its time, and hardly more."""
    assert seconds - 0.2 <= summary["active_s"] <= seconds + SLACK_S


def test_a_rate_and_a_duration(play: Play) -> None:
    """As many are sent as they make, half of them by each of two workers, and the run lasts so long."""
    summary = play("--rate", "100/s", "--duration", "2s", "--delay", "20ms", *LATE)

    assert_all_ok(summary, 200)
    assert summary["throughput_rps"] == pytest.approx(100.0, rel=0.05)
    assert_lasts(summary, 2)
    assert sorted(worker["requests"] for worker in summary["workers"]) == [100, 100]
    assert summary["latency_ms"]["min"] >= 20
    assert summary["response_time_ms"]["max"] >= summary["lateness_ms"]["max"]


def test_stages_of_a_rate(play: Play) -> None:
    """Each sends its integral, and is a phase with an account of its own."""
    stages = ("--stage", "1s:0..100/s", "--stage", "1s:100/s", "--stage", "1s:0/s")
    summary = play(*stages, "--delay", "20ms", *LATE)

    assert_all_ok(summary, 200)
    assert_lasts(summary, 3)
    assert list_phases(summary) == {"stage-1": 50, "stage-2": 100, "stage-3": 50}


def test_a_duration_alone(play: Play) -> None:
    """The run ends when its time is over; what was taken until then is all that it is."""
    summary = play("--duration", "2s", "--concurrency", "6", "--delay", "50ms")

    assert_all_ok(summary, summary["accounted"])
    assert summary["active_s"] == 2.0
    assert summary["throughput_rps"] == round(summary["servers"]["served"] / 2, 1)
    assert WORKERS <= summary["requests"] <= WORKERS * 3 * (2 / 0.05 + 1)


def test_a_duration_is_used_to_its_end(watch: Watch) -> None:
    """The target sees requests for all of it, and counts as many per second of it as the summary says."""
    summary, target = watch("--duration", "2s", "-c", "5", delay_s=0.02)

    assert_completed(summary)
    assert summary["active_s"] == 2.0
    assert summary["throughput_rps"] == pytest.approx(len(target.arrivals) / 2.0, rel=0.001)
    # It may take a moment to begin, and the last request of each slot is one delay before the end.
    assert target.arrivals[-1].at - target.arrivals[0].at >= 2.0 - BUSY_MS / 1000


def test_a_duration_and_fewer_requests_than_fit_into_it(play: Play) -> None:
    """The run ends with the last of them."""
    summary = play("--duration", "60s", "-n", "50", "--delay", "10ms")

    assert_all_ok(summary, 50)
    assert summary["active_s"] < 30


def test_stages_of_concurrency(play: Play) -> None:
    """Both workers together have as many in flight as the stages say; each stage is a phase."""
    stages = ("--stage", "1s:0..8", "--stage", "1s:8", "--stage", "1s:0")
    summary = play(*stages, "--delay", "50ms")

    assert_all_ok(summary, summary["accounted"])
    assert_lasts(summary, 3)
    phases = list_phases(summary)
    areas = {"stage-1": 4, "stage-2": 8, "stage-3": 4}
    assert list(phases) == list(areas)
    # No slot can make a request in less time than it is delayed; those that are in flight are one more each.
    assert all(0 < phases[name] <= area / 0.05 + 8 for name, area in areas.items())


@pytest.mark.parametrize(
    "load", [("--rate", "100/s", "--duration", "2s", *LATE), ("--duration", "2s", "-c", "2")]
)
def test_a_warm_up(play: Play, load: tuple[str, ...]) -> None:
    """It is a phase of its own, whose latencies are not those of the run."""
    summary = play(*load, "--warm-up", "1s", "--delay", "20ms")

    assert_all_ok(summary, summary["accounted"])
    assert_lasts(summary, 2)
    phases = list_phases(summary)
    assert list(phases) == ["warm-up", "main"]
    assert phases == {"warm-up": 100, "main": 100} or "--rate" not in load
    assert summary["phases"][1]["latency_ms"] == summary["latency_ms"]
    assert summary["phases"][0]["latency_ms"] != summary["latency_ms"]


SLOW = ("--rate", "100/s", "--duration", "3s", "--concurrency", "30", "--delay", "500ms")
"""Two workers can have 60 requests a second answered."""


def test_what_is_late_is_sent_all_the_same(play: Play) -> None:
    """With `--late send` the run takes as long as the target needs, and nothing is missing."""
    summary = play(*SLOW, "--late", "send")

    assert_all_ok(summary, 300)
    assert summary["active_s"] >= 300 / 60 - 0.2
    assert summary["lateness_ms"]["max"] > 1000
    assert summary["latency_ms"]["min"] >= 500
    assert summary["response_time_ms"]["max"] >= 500 + summary["lateness_ms"]["max"] - BUSY_MS


def test_what_finds_no_room_in_time_is_not_sent(play: Play) -> None:
    """The target gets as much as it can answer, the rest is counted by cause, and the run ends on time."""
    summary = play(*SLOW, "--late", "500ms")

    assert_completed(summary)
    outcomes, not_sent = summary["outcomes"], summary["not_sent"]
    assert outcomes["ok"] + outcomes["not_sent"] == 300
    assert summary["servers"] == {"served": outcomes["ok"]}
    assert sum(not_sent.values()) == outcomes["not_sent"]
    # The first 30 find a free slot; each slot is free again after half a second.
    assert 30 <= outcomes["ok"] <= 30 * (3.5 / 0.5 + 1), summary
    assert not_sent["in_flight_cap"] >= 60
    # What was taken in time may still wait for the processor.
    assert summary["lateness_ms"]["max"] <= 500 + BUSY_MS
    assert_lasts(summary, 3)
    assert "off_plan" in list_flags(summary)


def test_a_rate_that_nobody_can_send_ends_as_any_other(play: Play) -> None:
    """Its workers stay, send what they can, and say of the rest that it was not sent."""
    rate = ("--rate", "10M/s", "--duration", "2s", "--concurrency", "40")
    summary = play(*rate, "--delay", "5ms")

    assert_completed(summary)
    outcomes = {name: count for name, count in summary["outcomes"].items() if count}
    assert outcomes.keys() == {"ok", "not_sent"}
    assert sum(outcomes.values()) == 20_000_000
    assert summary["servers"] == {"served": outcomes["ok"]}
    assert outcomes["ok"] > 20
    assert summary["resent_at_most"] == 0
    assert "off_plan" in list_flags(summary)
    assert "worker_lost" not in list_flags(summary)
    assert summary["active_s"] <= 2 + SLACK_S


def test_a_target_that_does_not_answer(play: Play) -> None:
    """The run ends on time: what is in flight times out, what finds no slot is not sent."""
    rate = ("--rate", "50/s", "--duration", "3s", "--concurrency", "20")
    summary = play(*rate, "--delay", "60s", "--timeout", "1s", "--late", "100ms")

    assert_completed(summary)
    outcomes = summary["outcomes"]
    assert outcomes["timeout"] + outcomes["not_sent"] == 150
    assert outcomes["timeout"] >= 20
    assert summary["not_sent"]["in_flight_cap"] >= 30
    assert summary["servers"]["served"] <= outcomes["timeout"]
    assert summary["active_s"] <= 3 + 1 + SLACK_S


def test_a_closed_run_is_never_faster_than_its_limit(watch: Watch) -> None:
    """Not in any second, and not at its beginning, as the target sees it, whatever the window would allow."""
    summary, target = watch("-n", "300", "--max-rate", "100/s", "--concurrency", "50")

    assert_completed(summary)
    assert summary["outcomes"]["ok"] == len(target.arrivals) == 300
    # What this busy machine shows late falls into the next second.
    assert target.count_most_within(1.0) <= 130
    assert target.arrivals[-1].at - target.arrivals[0].at >= 2.7
    assert len([worker for worker in summary["workers"] if worker["requests"]]) == WORKERS


@pytest.mark.parametrize("load", [("-n", "200", "-c", "10"), ("--rate", "100/s", "--duration", "2s", *LATE)])
def test_without_keep_alive_each_request_has_a_connection(watch: Watch, load: tuple[str, ...]) -> None:
    """A connection carries one request, which asks for it to be closed."""
    summary, target = watch(*load, "--no-keepalive")

    assert_completed(summary)
    assert summary["outcomes"]["ok"] == len(target.arrivals) == target.connections == 200
    for arrival in target.arrivals:
        assert arrival.turn == 0
        assert [value.lower() for value in arrival.request.header("connection")] == ["close"]
