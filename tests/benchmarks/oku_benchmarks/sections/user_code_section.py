"""The section of the benchmark `user-code`: iterations beside Locust, a bare loop and k6, and kills."""

from collections.abc import Callable

from oku_benchmarks.cases.user_code import (
    KILLS,
    OKU_LOCUST,
    OKU_SCENARIO,
    STEPS,
    USERS,
    Results,
    Round,
    pick,
)
from oku_benchmarks.measuring.spread import Spread, build_ratios, build_spread
from oku_benchmarks.sections.section import NONE, Goal, Section, build_table, fill_text
from oku_benchmarks.turns.user_code_rivals import K6, LOCUST, LOCUST_TWO, LOCUST_WORKER, LOOP

_LOCUST_RATE, _LOCUST_CPU = 0.95, 1.1
_LOOP_RATE, _SCENARIO_RATE = 0.8, 2.0
_RESENT = 3.0
_TEXT = """\
Iterations of user code, {users} at a time, at one nginx process that answers from memory: a real `oku run`
with one worker, with its broker, coordinator, ledger and live view, and the others take turns, {rounds}
rounds of {turn_s} s, in turned order. Locust has the same file as Oku: a `FastHttpUser` without waiting, in
one process, and as master and worker. The bare loop is aiohttp without anything beside it. The figures are
of the time between 20 % and 90 % of a turn's own requests; processor time is that of all processes of the
client, of Oku of the worker and its host.

{table}

{kills_text}
{missing}"""
_KILLS = """\
In a run of {iterations:,} iterations by two workers, {kills} times a host or a worker was killed, in turn:
{accounted:,} iterations are accounted, {twice:,} requests reached the target again, and the run said that
these are at most {said:,}.
"""


def build_section(results: Results) -> Section:
    """Everything of the benchmark."""
    kills = results.kills
    missing = f"\n\nLeft out: {'; '.join(sorted(set(results.missing.values())))}." if results.missing else ""
    return Section(
        title="User code",
        text=fill_text(
            _TEXT,
            users=USERS,
            rounds=max(entry.number for entry in results.rounds),
            turn_s=results.turn_s,
            table=_build_table(results),
            kills_text=_KILLS.format(
                iterations=kills.iterations,
                kills=KILLS,
                accounted=kills.accounted,
                twice=kills.twice,
                said=kills.resent_at_most,
            ),
            missing=missing,
        ),
        goals=_build_goals(results),
        packages=("aiohttp", "uvloop", "locust", "gevent", "nginx", "k6"),
    )


def _build_table(results: Results) -> str:
    own = {1: OKU_LOCUST, 2: OKU_SCENARIO}
    rows = []
    for name, steps in STEPS.items():
        if name in results.missing:
            continue
        beside = own[steps]
        rows.append(
            [
                name,
                build_spread(pick(results, name, _rate)).format(",.0f"),
                NONE if name == beside else _compare(results, beside, name, _rate).format(".2f"),
                build_spread(pick(results, name, _cpu_us)).format(".1f"),
                build_spread(pick(results, name, lambda entry: entry.cpu_share)).format(".2f"),
            ]
        )
    return build_table(["", "iterations/s", "Oku's rate to this", "µs of CPU each", "share of a core"], rows)


def _build_goals(results: Results) -> list[Goal]:
    goals = [
        _build_goal(results, f"locustfile, rate: at least {_LOCUST_RATE:g} of that of {rival}", _rate,
                    (OKU_LOCUST, rival), least=_LOCUST_RATE)
        for rival in (LOCUST, LOCUST_WORKER)
    ]  # fmt: skip
    goals += [
        _build_goal(results, f"locustfile, processor time: at most {_LOCUST_CPU:g} times that of {rival}",
                    _cpu_us, (OKU_LOCUST, rival), most=_LOCUST_CPU)
        for rival in (LOCUST, LOCUST_WORKER)
    ]  # fmt: skip
    goals += [
        _build_goal(results, f"scenario of two requests, rate: at least {_LOOP_RATE:g} of that of a bare"
                    " aiohttp loop", _rate, (OKU_SCENARIO, LOOP), least=_LOOP_RATE),
        _build_goal(results, f"scenario of two requests, rate: at least {_SCENARIO_RATE:g} times that of"
                    " Locust's FastHttpUser", _rate, (OKU_SCENARIO, LOCUST_TWO), least=_SCENARIO_RATE),
    ]  # fmt: skip
    if K6 not in results.missing:
        goals.append(
            _build_goal(results, "scenario of two requests, processor time: at most that of k6", _cpu_us,
                        (OKU_SCENARIO, K6), most=1.0)
        )  # fmt: skip
    kills = results.kills
    goals.append(
        Goal(
            text=f"{KILLS} kills in {kills.iterations:,} iterations: exact; sent twice within"
            f" `resent_at_most`, which is at most {_RESENT:g} times of it",
            result=f"{kills.accounted:,} accounted; {kills.twice:,} twice, {kills.resent_at_most:,} said",
            is_met=kills.accounted == kills.iterations
            and kills.twice <= kills.resent_at_most <= _RESENT * kills.twice,
        )
    )
    return goals


def _build_goal(
    results: Results,
    text: str,
    figure: Callable[[Round], float],
    names: tuple[str, str],
    least: float = 0.0,
    most: float = float("inf"),
) -> Goal:
    ratio = _compare(results, *names, figure)
    return Goal(text=text, result=ratio.format(".2f"), is_met=least <= ratio.median <= most)


def _compare(results: Results, one: str, other: str, figure: Callable[[Round], float]) -> Spread:
    return build_ratios(pick(results, one, figure), pick(results, other, figure))


def _rate(entry: Round) -> float:
    return entry.rate


def _cpu_us(entry: Round) -> float:
    return entry.cpu_us
