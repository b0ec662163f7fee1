"""The section of the benchmark `start`: the shortest run."""

from collections.abc import Callable, Iterable

from oku_benchmarks.cases.start import ONE_URL, OWN_SERVERS, REQUESTS, Results, ShortRun
from oku_benchmarks.measuring.spread import Spread, build_spread
from oku_benchmarks.sections.section import Goal, Section, build_table, fill_text
from oku_benchmarks.turns.oku_turn import AIOHTTP, HTTPTOOLS

_FIRST_REQUEST_S, _PROMPT_S = 1.0, 2.0
_TEXT = """\
`oku run -n {requests}`, typed into a terminal in an empty folder: a broker, a coordinator, a worker and,
without a URL, a delay server start, ten requests are made and accounted for, the summary is printed,
everything ends, and the report is written. The time to the first request is when the target received it, the
result stood on the screen with the summary, and the prompt was back when nothing was left running. {rounds}
turns each; the figures are medians, in brackets the smallest and the largest.

{table}
"""


def build_section(results: Results) -> Section:
    """Everything of the benchmark."""
    header = ["target", "engine", "first request", "result", "prompt again"]
    shapes = [(target, engine) for target in (OWN_SERVERS, ONE_URL) for engine in (AIOHTTP, HTTPTOOLS)]
    rows = []
    goals = []
    for target, engine in shapes:
        runs = [run for run in results.runs if (run.target, run.engine) == (target, engine)]
        first = _spread(runs, lambda run: run.timing.first_request_s)
        shown = _spread(runs, lambda run: run.timing.result_s)
        prompt = _spread(runs, lambda run: run.timing.prompt_s)
        rows.append([target, f"`{engine}`", *(f"{each.format('.2f')} s" for each in (first, shown, prompt))])
        for what, spread, most_s in (
            ("first request", first, _FIRST_REQUEST_S),
            (f"`oku run -n {REQUESTS}`", prompt, _PROMPT_S),
        ):
            goals.append(
                Goal(
                    text=f"{what} in less than {most_s:g} s: {target}, `{engine}`",
                    result=f"{spread.format('.2f')} s",
                    is_met=spread.median < most_s,
                )
            )
    return Section(
        title="The shortest run",
        text=fill_text(
            _TEXT,
            requests=REQUESTS,
            rounds=max(run.number for run in results.runs),
            table=build_table(header, rows),
        ),
        goals=goals,
        packages=("aiohttp", "celery", "valkey"),
    )


def _spread(runs: Iterable[ShortRun], pick: Callable[[ShortRun], float | None]) -> Spread:
    return build_spread(value for run in runs if (value := pick(run)) is not None)
