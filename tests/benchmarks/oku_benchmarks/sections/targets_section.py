"""The section of the benchmark `targets`: what targets, data and checks cost a request."""

from oku_benchmarks.cases.targets import (
    CHECK,
    CONNECTIONS,
    DATA,
    ONE,
    ONE_VARYING,
    TEN,
    Results,
    pick,
)
from oku_benchmarks.measuring.spread import Spread, build_ratios, build_spread
from oku_benchmarks.sections.section import Goal, Section, build_table, fill_text

_BESIDE = {ONE: ONE, TEN: ONE, DATA: ONE, ONE_VARYING: ONE_VARYING, CHECK: ONE_VARYING}
_LEAST_WITH_DATA, _LEAST_WITH_CHECK = 0.8, 0.6
_TEXT = """\
The httptools engine alone, with {connections} connections at a target that answers at once and {requests}
requests a turn; who begins changes from round to round. *Ten with data* are ten targets, and the path and the
query of each request have values of its row of a CSV file. A check is paid for by answers that differ from
each other, so the body check stands beside one target whose answers do. The speed is the processor time of
the other contestant divided by that of this one, round by round.

{table}
"""


def build_section(results: Results) -> Section:
    """Everything of the benchmark."""
    rows = [
        [
            name,
            build_spread(pick(results, name)).format(".1f"),
            beside,
            _build_speed(results, name).format(".2f"),
        ]
        for name, beside in _BESIDE.items()
    ]
    return Section(
        title="Targets, data and checks",
        text=fill_text(
            _TEXT,
            connections=f"{CONNECTIONS:,}",
            requests=f"{results.requests:,}",
            table=build_table(["contestant", "µs of processor time", "beside", "speed"], rows),
        ),
        goals=[
            _build_goal(results, DATA, "ten targets with data", _LEAST_WITH_DATA),
            _build_goal(results, CHECK, "a body check of answers that differ", _LEAST_WITH_CHECK),
        ],
        packages=("httptools", "uvloop", "msgspec"),
    )


def _build_goal(results: Results, name: str, text: str, least: float) -> Goal:
    speed = _build_speed(results, name)
    return Goal(
        text=f"httptools, {text}: at least {least} of the requests per CPU second of one target without",
        result=speed.format(".2f"),
        is_met=speed.median >= least,
    )


def _build_speed(results: Results, name: str) -> Spread:
    return build_ratios(pick(results, _BESIDE[name]), pick(results, name))
