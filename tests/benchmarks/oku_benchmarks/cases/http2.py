"""Oku beside h2load, oha and k6 in HTTP/2, and what a stream in flight costs a worker of memory.

As in `answers`, the kinds of answers take turns in each round, and so do the contestants at each of them.
nginx counts requests by itself. nghttpd counts none, see there; it costs less than nginx, which is itself the
limit of what is fast.
"""

import json
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from oku_benchmarks.cases import connections
from oku_benchmarks.cases.peer_contest import (
    HTTP2,
    OKU,
    TARGET,
    PeerContest,
    Question,
    Round,
    find_missing,
)
from oku_benchmarks.cases.request_profile import Profile, measure_profiles
from oku_benchmarks.install import describe_missing, find_program
from oku_benchmarks.measuring.target import Place
from oku_benchmarks.plan import Plan
from oku_benchmarks.progress import log
from oku_benchmarks.turns.answer_kinds import BEHIND, HTTP2_KINDS, HTTP2_TLS
from oku_benchmarks.turns.delay_server import DelayServer
from oku_benchmarks.turns.nghttpd import COUNTED_WITHIN, Nghttpd
from oku_benchmarks.turns.nginx import Nginx
from oku_benchmarks.turns.oku_turn import NGHTTP2, Load
from oku_benchmarks.turns.rivals import H2LOAD, K6, K6_1
from oku_benchmarks.turns.turn import Stage

NGHTTPD_CLEAR = "nghttpd, clear"
CONNECTIONS = 10
"""Of each contestant but k6."""
STREAMS_HELD = 100
"""On each connection, where memory is looked at."""
DELAY = "5000ms..6000ms"


class Results(msgspec.Struct, frozen=True, kw_only=True):
    """All turns.

    Attributes:
        turn_s: how long a turn is.
        rounds: the turns at each kind of answers, in the order in which they were taken.
        profiles: of Oku and h2load; those that could not be taken are left out.
        memory: of a worker with few and with many streams in flight.
        missing: contestants and kinds of answers that are not there, and why.
    """

    turn_s: int
    rounds: dict[str, list[Round]]
    profiles: list[Profile]
    memory: list[connections.Round]
    missing: dict[str, str]


def measure(plan: Plan, folder: Path) -> Results:
    """Let all contestants take their turns at all kinds of answers, profile two, then hold streams."""
    missing = find_missing(HTTP2.rivals, HTTP2.rivals)
    if unserved := [program for program in ("nghttpd", H2LOAD) if find_program(program) is None]:
        missing[NGHTTPD_CLEAR] = describe_missing(unserved[0])
        log(f"  left out: {NGHTTPD_CLEAR}: {missing[NGHTTPD_CLEAR]}")
    with ExitStack() as exits:
        contests = _build_nginx_contests(exits, folder, plan.peer_turn_s)
        if NGHTTPD_CLEAR not in missing:
            contests[NGHTTPD_CLEAR] = _build_nghttpd_contest(exits, folder, plan.peer_turn_s)
        rounds: dict[str, list[Round]] = {kind: [] for kind in contests}
        for number in range(1, plan.rounds + 1):
            for kind, contest in contests.items():
                names = [name for name in list_contestants(kind) if name not in missing]
                # Who comes first after the turn of others changes.
                for name in names if number % 2 else reversed(names):
                    rounds[kind].append(contest.measure_round(name, CONNECTIONS, number))
        names = [name for name in (OKU, H2LOAD) if name not in missing]
        profiles = measure_profiles(contests, names, CONNECTIONS, folder, plan.peer_turn_s / 2)
    return Results(
        turn_s=plan.peer_turn_s,
        rounds=rounds,
        profiles=profiles,
        memory=_measure_memory(plan, folder),
        missing=missing,
    )


def list_contestants(kind: str) -> Sequence[str]:
    """Who takes turns at a kind of answers: k6 speaks HTTP/2 only over TLS."""
    return [OKU, *(name for name in HTTP2.rivals if kind == HTTP2_TLS or name not in (K6, K6_1))]


def _build_nginx_contests(exits: ExitStack, folder: Path, turn_s: int) -> dict[str, PeerContest]:
    nginx = exits.enter_context(Nginx(folder, has_tls=True, has_http2=True))
    contests = {}
    for name, kind in HTTP2_KINDS.items():
        (url,) = nginx.build_urls(kind)
        stage = Stage(Place(url, nginx.read_served), folder, beside={TARGET: nginx.pid})
        question = Question(spec=_write_spec(folder, name, url), label=name)
        contests[name] = PeerContest(stage, turn_s, question, HTTP2)
    return contests


def _build_nghttpd_contest(exits: ExitStack, folder: Path, turn_s: int) -> PeerContest:
    nghttpd = exits.enter_context(Nghttpd(folder))
    stage = Stage(nghttpd, folder, beside={TARGET: nghttpd.pid})
    spec = _write_spec(folder, NGHTTPD_CLEAR, nghttpd.url)
    question = Question(spec=spec, label=NGHTTPD_CLEAR, counted_within=COUNTED_WITHIN)
    return PeerContest(stage, turn_s, question, HTTP2)


def _write_spec(folder: Path, name: str, url: str, *, streams: int = HTTP2.streams) -> str:
    """What Oku asks, in a file."""
    # The certificate is nobody's; the others do not look at it either.
    tls = {"insecure": True} if url.startswith("https:") else {}
    path = folder / f"{name.replace(', ', '-')}.json"
    path.write_text(json.dumps({"url": url, "streams": streams, **tls}))
    return str(path)


def _measure_memory(plan: Plan, folder: Path) -> list[connections.Round]:
    """Runs with few and with many streams in flight, at a server behind nginx that waits."""
    with ExitStack() as exits:
        server = exits.enter_context(DelayServer(folder, DELAY))
        behind = urlsplit(server.url).netloc
        nginx = exits.enter_context(Nginx(folder, has_http2=True, behind=behind))
        (url,) = nginx.build_urls(BEHIND)
        spec = _write_spec(folder, "behind", url, streams=STREAMS_HELD)
        stage = Stage(Place(url, server.read_served), folder)
        return [
            connections.measure_round(stage, number, Load(concurrency=in_flight, engine=NGHTTP2, spec=spec))
            for number in range(1, plan.rounds + 1)
            for in_flight in (connections.BASE, plan.http2_streams)
        ]
