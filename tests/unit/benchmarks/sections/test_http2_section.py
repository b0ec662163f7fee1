from oku_benchmarks.cases import connections
from oku_benchmarks.cases.http2 import CONNECTIONS, NGHTTPD_CLEAR, Results, list_contestants
from oku_benchmarks.cases.peer_contest import OKU, Round
from oku_benchmarks.cases.request_profile import Profile
from oku_benchmarks.sections.http2_section import build_section
from oku_benchmarks.turns.answer_kinds import HTTP2_CLEAR, HTTP2_KINDS, HTTP2_TLS
from oku_benchmarks.turns.rivals import H2LOAD, K6, K6_1, OHA, OHA_1

COSTS_US = {OKU: 5.0, H2LOAD: 2.5, OHA_1: 6.0, OHA: 7.0, K6_1: 50.0, K6: 60.0}
KINDS = (*HTTP2_KINDS, NGHTTPD_CLEAR)


def build_round(contestant: str) -> Round:
    """A turn of a contestant that uses a whole core."""
    cpu_us = COSTS_US[contestant]
    return Round(
        number=1,
        contestant=contestant,
        connections=CONNECTIONS,
        requests=100_000,
        rate_rps=1e6 / cpu_us,
        cpu_us=cpu_us,
        cpu_share=1.0,
        target_share=0.5,
    )


def build_results(*missing: str, stream_kb: float = 1.5, profiles: tuple[Profile, ...] = ()) -> Results:
    """One round of all that are there."""
    return Results(
        turn_s=4,
        rounds={
            kind: [build_round(name) for name in list_contestants(kind) if name not in missing]
            for kind in KINDS
            if kind not in missing
        },
        profiles=list(profiles),
        memory=[
            connections.Round(number=1, in_flight=100, worker_mb=70.0, peak_mb=71.0),
            connections.Round(number=1, in_flight=10_100, worker_mb=70.0 + 10 * stream_kb, peak_mb=90.0),
        ],
        missing={name: f"{name} is not installed" for name in missing},
    )


def judge(results: Results, *words: str) -> dict[str, bool]:
    """The goals in whose text all words stand, and whether they are met."""
    goals = build_section(results, cores=2).goals
    return {goal.text: goal.is_met for goal in goals if all(word in goal.text for word in words)}


def test_the_rate_is_held_against_h2load_at_each_kind_of_answers() -> None:
    """Half of it is too little."""
    assert judge(build_results(), "rate", H2LOAD) == {
        f"HTTP/2, rate, {kind}: at least 0.6 of that of h2load": False for kind in KINDS
    }


def test_processor_time_is_held_against_the_others_where_they_take_part() -> None:
    """k6 speaks HTTP/2 only over TLS; oha with all its threads has no goal."""
    goals = judge(build_results(), "CPU second")

    assert goals == {
        **{f"HTTP/2, requests per CPU second, {kind}: more than {OHA_1}": True for kind in KINDS},
        **{f"HTTP/2, requests per CPU second, {HTTP2_TLS}: more than {name}": True for name in (K6_1, K6)},
    }


def test_memory_of_a_stream_is_the_difference_for_each_of_them() -> None:
    """15 MB more for 10,000 streams more are 1.5 kB."""
    (goal,) = (goal for goal in build_section(build_results(), cores=2).goals if "memory" in goal.text)

    assert (goal.result, goal.is_met) == ("1.50 kB", True)
    assert not any(judge(build_results(stream_kb=2.5), "memory").values())


def test_what_is_missing_is_in_no_goal_and_said() -> None:
    """The page is built all the same, without a contestant and without a kind of answers."""
    results = build_results(K6, NGHTTPD_CLEAR)

    assert not judge(results, NGHTTPD_CLEAR)
    assert set(judge(results, "k6")) == {f"HTTP/2, requests per CPU second, {HTTP2_TLS}: more than {K6_1}"}
    text = " ".join(build_section(results, cores=2).text.split())
    assert "Left out: k6 is not installed; nghttpd, clear is not installed." in text


def test_the_section_says_who_limits_the_rate() -> None:
    """By what target and load generator use of a core."""
    text = " ".join(build_section(build_results(), cores=2).text.split())

    assert (
        f"`{HTTP2_CLEAR}` 0.50 under oku (which itself uses 1.00), 0.50 under h2load (which itself uses 1.00)"
        in text
    )


def test_a_profile_says_what_a_request_costs_more_than_one_of_h2load() -> None:
    """In µs of one request."""
    profiles = (
        Profile(
            kind=HTTP2_CLEAR, contestant=OKU, cpu_us=5.0, shares={"kernel": 0.4, "Python's interpreter": 0.6}
        ),
        Profile(kind=HTTP2_CLEAR, contestant=H2LOAD, cpu_us=2.5, shares={"kernel": 0.8, "h2load": 0.2}),
    )

    text = " ".join(build_section(build_results(profiles=profiles), cores=2).text.split())

    assert (
        f"For `{HTTP2_CLEAR}` a request takes 2.5 µs more of Oku's worker than of h2load: Python's"
        " interpreter +3.0, h2load -0.5." in text
    )
