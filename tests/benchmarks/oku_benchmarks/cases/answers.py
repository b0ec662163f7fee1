"""Oku beside wrk and h2load at answers that are the same byte for byte, and at ones that vary.

The kinds of answers take turns in each round, and so do the contestants at each of them. A profile of Oku's
worker and of wrk is taken afterwards, in turns of its own that count for nothing else.
"""

import json
from collections.abc import Mapping
from pathlib import Path

import msgspec

from oku_benchmarks.cases.peer_contest import (
    OKU,
    OKU_AIOHTTP,
    TARGET,
    PeerContest,
    Question,
    Round,
    find_missing,
)
from oku_benchmarks.cases.request_profile import Profile, measure_profiles
from oku_benchmarks.measuring.target import Place
from oku_benchmarks.plan import Plan
from oku_benchmarks.turns.answer_kinds import ANSWER_KINDS, SAME, VARYING, AnswerKind
from oku_benchmarks.turns.nginx import Nginx
from oku_benchmarks.turns.rivals import BARE_LOOP, H2LOAD, WRK
from oku_benchmarks.turns.turn import Stage

LOOP_CONNECTIONS = 100
"""Of the engine `aiohttp` and the bare loop, and of the profile."""
_TURNS = 2
"""A turn is as long as so many of other contests: in about 8 s fast clients make a million requests."""
LOOP_KINDS = (SAME, VARYING)
"""The kinds of answers that these two are measured at."""


class Results(msgspec.Struct, frozen=True, kw_only=True):
    """All turns.

    Attributes:
        turn_s: how long a turn is.
        rounds: the turns at each kind of answers, in the order in which they were taken.
        profiles: of Oku and wrk; those that could not be taken are left out.
        missing: contestants that are not there, and why.
    """

    turn_s: int
    rounds: dict[str, list[Round]]
    profiles: list[Profile]
    missing: dict[str, str]


def measure(plan: Plan, folder: Path) -> Results:
    """Let all contestants take their turns at all kinds of answers, then profile two of them."""
    turn_s = _TURNS * plan.peer_turn_s
    missing = find_missing((WRK, H2LOAD, BARE_LOOP))
    rounds: dict[str, list[Round]] = {kind: [] for kind in ANSWER_KINDS}
    with Nginx(folder, has_tls=True) as nginx:
        contests = {
            (kind, connections): _build_contest(nginx, folder, kind, turn_s)
            for kind in ANSWER_KINDS
            for connections in plan.concurrencies
        }
        for number in range(1, plan.rounds + 1):
            for (kind, connections), contest in contests.items():
                names = [name for name in _list_contestants(kind, connections) if name not in missing]
                # Who comes first after the turn of others changes.
                for name in names if number % 2 else reversed(names):
                    rounds[kind].append(contest.measure_round(name, connections, number))
        profiles = measure_profiles(
            {kind: contests[kind, LOOP_CONNECTIONS] for kind in ANSWER_KINDS},
            [name for name in (OKU, WRK) if name not in missing],
            LOOP_CONNECTIONS,
            folder,
            plan.peer_turn_s / 2,
        )
    return Results(turn_s=turn_s, rounds=rounds, profiles=profiles, missing=missing)


def _list_contestants(kind: str, connections: int) -> list[str]:
    has_loop = kind in LOOP_KINDS and connections == LOOP_CONNECTIONS
    return [OKU, WRK, H2LOAD, *((OKU_AIOHTTP, BARE_LOOP) if has_loop else ())]


def _build_contest(nginx: Nginx, folder: Path, name: str, turn_s: int) -> PeerContest:
    kind = ANSWER_KINDS[name]
    url, *more_urls = nginx.build_urls(kind)
    spec = folder / f"{name.replace(' ', '-')}.json"
    spec.write_text(json.dumps(_build_spec(kind, [url, *more_urls])))
    stage = Stage(Place(url, nginx.read_served), folder, beside={TARGET: nginx.pid})
    return PeerContest(stage, turn_s, Question(more_urls=more_urls, spec=str(spec), label=name))


def _build_spec(kind: AnswerKind, urls: list[str]) -> Mapping[str, object]:
    # The certificate is nobody's; the others do not look at it either.
    tls = {"insecure": True} if kind.is_tls else {}
    if len(urls) == 1:
        return {"url": urls[0], **tls}
    return {
        "targets": [{"name": f"target {number}", "url": url} for number, url in enumerate(urls, 1)],
        **tls,
    }
