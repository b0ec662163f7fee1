"""The section of the benchmark `first-minute`: from nothing to the first report, beside other tools."""

from collections.abc import Callable, Iterable, Sequence

from oku_benchmarks.cases.first_install import Installation
from oku_benchmarks.cases.first_minute import ANSWERS_500, NOBODY_LISTENS, FirstReport, Results
from oku_benchmarks.measuring.spread import build_spread
from oku_benchmarks.sections.section import NONE, Goal, Section, build_table, fill_text
from oku_benchmarks.turns.first_lines import CONCURRENCY, FIRST_LINES, OKU, REQUESTS
from oku_benchmarks.turns.stopwatch import Timing

_GOAL_S = 60
_TEXT = """\
From an empty folder to the first report of a test of one's own service, as somebody does it who never used
the tool: {requests:,} requests, {concurrency} at a time, at one small HTTP server on loopback, the same for
all. Each line is typed into a terminal of its own, in an empty folder; they take {rounds}
turns each, and the figures are medians, in brackets the smallest and the largest.

**Install.** What is a Python package is installed twice, from an empty cache and from the cache that this
has filled; the first is as fast as the network and the index are. Oku is installed from the wheel
that `./task build` makes, what it depends on from the index. oha and k6 are
downloaded as one program each, from where this machine does not reach: they were built here, and only the
size of the program is told.

{installations}

**First test.** The time to the first request is when the service received it, the time to the result when
it stood on the screen. Oku starts a broker, a coordinator and a worker first, and ends them afterwards:
most of its time goes into that, whatever the number of requests. k6 and Locust need a script first, of as
many lines as the table says, without empty ones, whose writing is not counted in seconds. Locust ends after
a time, not after a number of requests; its script counts.

{tests}

**First report.** Oku's is written by the same line; the others have a flag for it. The dashboard of k6
writes no page when a test is too short for it.

{reports}

**Exit codes.** The same line at a service that answers, at one that answers every request with status 500,
and at a port where nobody listens: what a script or CI sees of it.

{endings}
{missing}"""


def build_section(results: Results) -> Section:
    """Everything of the benchmark."""
    names = [name for name in FIRST_LINES if name not in results.missing]
    reasons = sorted(results.missing.values())
    return Section(
        title="The first minute",
        text=fill_text(
            _TEXT,
            requests=REQUESTS,
            concurrency=CONCURRENCY,
            rounds=max(test.number for test in results.tests),
            installations=_build_installations(results.installations),
            tests=_build_tests(results, names),
            reports=_build_reports(results, names),
            endings=_build_endings(results, names),
            missing=f"\nLeft out: {'; '.join(reasons)}.\n" if reasons else "",
        ),
        goals=list(_build_goals(results)),
        packages=("aiohttp", "celery", "valkey", "locust", "gevent", "oha", "k6"),
    )


def _build_installations(installations: Iterable[Installation]) -> str:
    header = ["install", "from nothing", "again, from the cache", "on disk"]
    rows = [
        [
            f"`{entry.typed}`" if entry.typed else f"{entry.name}, one program",
            *map(_format_s, (entry.cold_s, entry.warm_s)),
            f"{entry.disk_mb:,.0f} MB",
        ]
        for entry in installations
    ]
    return build_table(header, rows)


def _build_tests(results: Results, names: Sequence[str]) -> str:
    header = ["typed", "lines of script", "first request", "result", "prompt again", "requests"]
    rows = []
    for name in names:
        timings = _find_timings(results, name)
        rows.append(
            [
                f"`{FIRST_LINES[name].line}`",
                str(FIRST_LINES[name].count_script_lines()),
                _build_cell(timings, lambda timing: timing.first_request_s),
                _build_cell(timings, lambda timing: timing.result_s),
                _build_cell(timings, lambda timing: timing.prompt_s),
                build_spread(timing.requests for timing in timings).format(",.0f"),
            ]
        )
    return build_table(header, rows)


def _build_reports(results: Results, names: Sequence[str]) -> str:
    header = ["", "report", "prompt again", "size"]
    rows = []
    for name in names:
        for file in FIRST_LINES[name].reports:
            reports = [entry for entry in results.reports if (entry.name, entry.file) == (name, file)]
            prompt = _build_cell([entry.timing for entry in reports], lambda timing: timing.prompt_s)
            rows.append([name, f"`{file}`", prompt, _build_size(reports)])
    return build_table(header, rows)


def _build_size(reports: Sequence[FirstReport]) -> str:
    sizes = [entry.size_kb for entry in reports if entry.size_kb is not None]
    written = build_spread(sizes).format(",.1f") + " kB" if sizes else "none"
    return written if len(sizes) in (0, len(reports)) else f"{written}, {len(sizes)} of {len(reports)} times"


def _build_endings(results: Results, names: Sequence[str]) -> str:
    header = ["", "answers 200", ANSWERS_500, NOBODY_LISTENS]
    rows = []
    for name in names:
        codes = sorted({timing.exit_code for timing in _find_timings(results, name)})
        row = [name, ", ".join(map(str, codes))]
        for service in (ANSWERS_500, NOBODY_LISTENS):
            [timing] = [
                entry.timing for entry in results.failures if (entry.name, entry.service) == (name, service)
            ]
            row.append(f"{timing.exit_code}, after {timing.prompt_s:.1f} s")
        rows.append(row)
    return build_table(header, rows)


def _build_goals(results: Results) -> Iterable[Goal]:
    """Install and the first line together: Oku's line writes its report as well."""
    test_s = build_spread(timing.prompt_s for timing in _find_timings(results, OKU)).median
    for entry in results.installations:
        if entry.name == OKU and entry.cold_s is not None:
            took_s = entry.cold_s + test_s
            yield Goal(
                text=f"from nothing to a report of one's own service within {_GOAL_S} s: `{entry.typed}`",
                result=f"{took_s:.1f} s",
                is_met=took_s <= _GOAL_S,
            )


def _find_timings(results: Results, name: str) -> list[Timing]:
    return [test.timing for test in results.tests if test.name == name]


def _build_cell(timings: Iterable[Timing], pick: Callable[[Timing], float | None]) -> str:
    values = [value for timing in timings if (value := pick(timing)) is not None]
    return f"{build_spread(values).format('.2f')} s" if values else NONE


def _format_s(seconds: float | None) -> str:
    return NONE if seconds is None else f"{seconds:.1f} s"
