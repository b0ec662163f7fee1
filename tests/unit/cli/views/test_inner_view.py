from collections.abc import Callable

from tests.unit.cli.conftest import make_outcomes
from tests.unit.cli.views.user_code_run import make_inner

from oku_cli.terminal.target_table import MOST_ROWS
from oku_cli.views.inner_view import INNER_NOTE, MOST_REASONS, build_inner_requests
from oku_core.accounting.outcome import Outcome
from oku_core.results.summary import FailureSummary

Render = Callable[..., list[str]]


def test_each_name_has_counts_times_rate_and_bytes(render: Render) -> None:
    """And what the table is, and is not."""
    failed = make_inner(name="buy", outcomes=make_outcomes(ok=990, timeout=10))
    lines = [line.split() for line in render(build_inner_requests([make_inner(), failed]), width=100)]
    assert lines[:4] == [
        ["Requests", "by", "name"],
        ["name", "requests", "ok", "failed", "p50", "p95", "p99", "rate", "bytes"],
        ["login", "1,000", "1,000", "0", "1.50", "ms", "15.0", "ms", "20.0", "ms", "500/s", "13.0", "kB"],
        ["buy", "1,000", "990", "10", "1.50", "ms", "15.0", "ms", "20.0", "ms", "500/s", "13.0", "kB"],
    ]
    assert lines[-1] == INNER_NOTE.split()


def test_a_narrow_terminal_has_fewer_columns(render: Render) -> None:
    """The counts and the slowest stay, and no line is wider than the terminal."""
    inner = make_inner(name="GET /orders/[id]", requests=10**7, outcomes=make_outcomes(ok=10**7))
    kept = {}
    for width in (100, 84, 75, 60):
        lines = render(build_inner_requests([inner]), width=width)
        assert max(map(len, lines)) <= width
        kept[width] = lines[1].split()
    assert kept[100][-3:] == ["p99", "rate", "bytes"]
    assert kept[84] == ["name", "requests", "ok", "failed", "p50", "p95", "p99", "rate"]
    assert kept[75] == ["name", "requests", "ok", "failed", "p50", "p99", "rate"]
    assert kept[60] == ["name", "requests", "ok", "failed", "p50", "p99"]


def test_of_very_many_names_the_worst_are_shown(render: Render) -> None:
    """The others are summed."""
    names = [make_inner(name=f"n{place}") for place in range(MOST_ROWS + 5)]
    names.append(make_inner(name="bad", outcomes=make_outcomes(ok=1, timeout=999)))
    lines = render(build_inner_requests(names), width=100)
    assert lines[2].split()[0] == "bad"
    assert len(lines) == 2 + MOST_ROWS + 1
    assert lines[-2].split()[:6] == ["and", "7", "more", "7,000", "7,000", "0"]


def test_why_requests_failed_is_said_the_most_frequent_reasons_first(render: Render) -> None:
    """Of all names together."""
    failures = [
        FailureSummary(outcome=Outcome.TIMEOUT, reason=f"no answer within {n}s", requests=10 * n)
        for n in range(1, 5)
    ]
    inner = [make_inner(failures=failures), make_inner(name="b\x1buy", failures=failures)]
    lines = [line.split() for line in render(build_inner_requests(inner), width=100)]
    assert lines[5] == ["login", "timeout", "no", "answer", "within", "4s", "40"]
    assert lines[6][0] == "b␛uy"
    assert lines[5 + MOST_REASONS] == ["and", "3", "other", "reasons"]
