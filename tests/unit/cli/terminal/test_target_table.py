from collections.abc import Callable, Sequence

from hypothesis import given
from hypothesis import strategies as st

from oku_cli.terminal.target_table import MOST_ROWS, TargetRow, TargetTable, choose_rows

Render = Callable[..., list[str]]


def make_row(name: str = "item", requests: int = 100, ok: int = 100, p99_ms: float = 20.0) -> TargetRow:
    """A target with these figures."""
    return TargetRow(name, requests, ok, requests / 10, (1.5, p99_ms), p99_ms)


def test_each_target_has_a_row_in_the_given_order(render: Render) -> None:
    """What is not ok is seen in the share; a target without a request yet has none."""
    rows = [make_row(), make_row("buy", 50, 49, 80.0), TargetRow("pay", 0, 0, 0.0, (None, None))]
    assert [line.split() for line in render(TargetTable(rows, ("p50", "p99")))] == [
        ["target", "requests", "ok", "rate", "p50", "p99"],
        ["item", "100", "100", "%", "10/s", "1.50", "ms", "20.0", "ms"],
        ["buy", "50", "98.00", "%", "5.0/s", "1.50", "ms", "80.0", "ms"],
        ["pay", "0", "-", "0/s", "-", "-"],
    ]


def test_of_too_many_targets_the_worst_are_shown_and_the_others_are_summed_up(render: Render) -> None:
    """The share that failed comes before the latency."""
    rows = [make_row(f"good-{place}") for place in range(20)]
    rows += [make_row("slow", p99_ms=900.0), make_row("broken", ok=40)]
    lines = render(TargetTable(rows, ("p50", "p99")))
    assert len(lines) == 1 + MOST_ROWS
    assert [line.split()[0] for line in lines[1:3]] == ["broken", "slow"]
    assert lines[-1].split() == ["and", "11", "more", "1,100", "100", "%", "110/s"]


def test_a_long_name_shows_both_of_its_ends(render: Render) -> None:
    """URLs with a common beginning differ at the end; the figures stay in one line with the name."""
    (_, line) = render(TargetTable([make_row("GET /a/very/long/path/to/{sku}/reviews")], ("p50", "p99")))
    assert line.split("  ")[0] == "GET /a/very/…sku}/reviews"


ROWS = st.builds(make_row, st.text("abc", max_size=3), st.just(100), st.integers(0, 100))


@given(st.lists(ROWS, max_size=30), st.integers(2, MOST_ROWS))
def test_every_target_is_shown_or_summed_up(rows: Sequence[TargetRow], most: int) -> None:
    """None counts twice, and none that is left out is worse than one that is shown."""
    shown, others = choose_rows(rows, most)
    assert sorted([*shown, *others]) == sorted(rows)
    assert len(shown) + bool(others) <= most
    if others:
        assert min(row.badness for row in shown) >= max(row.badness for row in others)
