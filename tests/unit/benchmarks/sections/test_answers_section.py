from oku_benchmarks.cases.answers import LOOP_CONNECTIONS, LOOP_KINDS, Results
from oku_benchmarks.cases.peer_contest import OKU, OKU_AIOHTTP, Round
from oku_benchmarks.cases.request_profile import Profile
from oku_benchmarks.sections.answers_section import build_section
from oku_benchmarks.turns.answer_kinds import ANSWER_KINDS, VARYING
from oku_benchmarks.turns.rivals import BARE_LOOP, H2LOAD, WRK

RATES = {OKU: 88_000.0, WRK: 100_000.0, H2LOAD: 80_000.0, OKU_AIOHTTP: 11_000.0, BARE_LOOP: 10_000.0}


def build_round(contestant: str, connections: int) -> Round:
    """A turn of a contestant that has as much time for all as for one."""
    rate = RATES[contestant]
    return Round(
        number=1,
        contestant=contestant,
        connections=connections,
        requests=100_000,
        rate_rps=rate,
        cpu_us=1e6 / rate,
        cpu_share=1.0,
        target_share=0.5,
    )


def build_results(*missing: str, profiles: tuple[Profile, ...] = ()) -> Results:
    """One round of all that are there."""
    rounds = {
        kind: [
            build_round(name, connections)
            for connections in (100, 1_000)
            for name in RATES
            if name not in missing
            and (
                name not in (OKU_AIOHTTP, BARE_LOOP)
                or (kind in LOOP_KINDS and connections == LOOP_CONNECTIONS)
            )
        ]
        for kind in ANSWER_KINDS
    }
    reasons = {name: f"{name} is not installed" for name in missing}
    return Results(turn_s=4, rounds=rounds, profiles=list(profiles), missing=reasons)


def test_each_kind_of_answers_has_a_goal_of_its_own() -> None:
    """With 0.88 of the rate of wrk those of the same answer and of one that varies are missed."""
    goals = {goal.text: goal.is_met for goal in build_section(build_results(), cores=2).goals}

    assert {text: is_met for text, is_met in goals.items() if "1,000" in text and "wrk" in text} == {
        "rate, answers `same`, 1,000 connections: at least 0.95 of that of wrk": False,
        "rate, answers `varying`, 1,000 connections: at least 0.9 of that of wrk": False,
        "rate, answers `chunked`, 1,000 connections: at least 0.85 of that of wrk": True,
        "rate, answers `json`, 1,000 connections: at least 0.85 of that of wrk": True,
    }


def test_the_other_engine_is_held_against_the_bare_loop() -> None:
    """By its rate and by its processor time, where both took turns."""
    goals = [goal for goal in build_section(build_results(), cores=2).goals if "bare loop" in goal.text]

    assert [goal.result for goal in goals] == ["1.10"] * 4
    assert all(goal.is_met for goal in goals)


def test_what_is_missing_is_in_no_goal_and_said() -> None:
    """The page is built all the same."""
    section = build_section(build_results(WRK), cores=2)

    assert not any("wrk" in goal.text for goal in section.goals)
    assert "Left out: wrk is not installed." in section.text


def test_a_profile_says_what_a_request_costs_more_and_where() -> None:
    """In µs of one request, the largest difference first."""
    profiles = (
        Profile(
            kind=VARYING, contestant=OKU, cpu_us=10.0, shares={"kernel": 0.7, "Python's interpreter": 0.3}
        ),
        Profile(kind=VARYING, contestant=WRK, cpu_us=8.0, shares={"kernel": 0.9, "wrk": 0.1}),
    )

    text = " ".join(build_section(build_results(profiles=profiles), cores=2).text.split())

    assert (
        "For `varying` a request takes 2.0 µs more of Oku's worker than of wrk: Python's interpreter +3.0,"
        " wrk -0.8, kernel -0.2." in text
    )
