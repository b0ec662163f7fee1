import itertools
from collections.abc import Callable, Iterator
from xml.etree import ElementTree as ET

import msgspec
from tests.unit.cli.report.conftest import Page
from tests.unit.cli.views.threshold_run import build_threshold_run

from oku_cli.exit_code import ExitCode
from oku_cli.remote.follow import classify
from oku_cli.report.head import build_head
from oku_cli.views.exit_reasons import describe_nothing_ok, list_exit_reasons
from oku_cli.views.junit import build_junit
from oku_cli.views.summary_markdown import build_markdown
from oku_cli.views.summary_view import build_summary
from oku_core.accounting.run_state import FINAL_STATES, REST_STATES, RunState
from oku_core.results.request_summary import OutcomeCounts
from oku_core.results.summary import Summary
from oku_core.results.validity import Flag, Validity
from oku_core.thresholds.threshold_summary import ThresholdVerdict, sum_up

COUNTS = ((0, 0, 0), (0, 0, 5), (0, 5, 0), (3, 2, 0), (5, 0, 0))
"""How many requests were ok, how many timed out, and how many were not sent."""


def make_run(state: RunState, counts: tuple[int, int, int], verdict: ThresholdVerdict | None) -> Summary:
    """A run at rest with one threshold, or none, and the verdict that the coordinator gives to it."""
    run = build_threshold_run()
    ok, timeout, not_sent = counts
    thresholds = [each for each in run.thresholds if each.verdict is verdict]
    is_nothing_ok = state in FINAL_STATES and (sum(counts) > 0 or state is RunState.COMPLETED) and not ok
    return msgspec.structs.replace(
        run,
        state=state,
        requests=sum(counts),
        accounted=sum(counts),
        outcomes=OutcomeCounts(
            ok=ok, unexpected_status=0, timeout=timeout, connect_error=0, disconnected=0, protocol_error=0,
            not_sent=not_sent,
        ),
        thresholds=thresholds,
        verdict=sum_up([each.verdict for each in thresholds], is_nothing_ok=is_nothing_ok),
        validity=[],
    )  # fmt: skip


def iter_runs() -> Iterator[tuple[str, Summary, bool]]:
    """Every way in which a run may come to rest, with and without `--allow-undecided`."""
    unbalanced = Validity(flag=Flag.UNBALANCED, detail="1 is missing", requests=1)
    cases = itertools.product(
        sorted(REST_STATES), COUNTS, [None, *ThresholdVerdict], [[], [unbalanced]], [False, True]
    )
    for state, counts, verdict, flags, allows in cases:
        run = msgspec.structs.replace(make_run(state, counts, verdict), validity=flags)
        yield f"{state}, {counts}, {verdict}, {len(flags)} flags, {allows}", run, allows


def is_red(junit: bytes) -> bool:
    """Whether a page of tests is red."""
    suite = ET.fromstring(junit)[0]  # our own file
    return suite.get("failures") != "0" or suite.get("errors") != "0"


def test_every_output_agrees_with_the_exit_code() -> None:
    """JUnit is red, and Markdown has the reasons, exactly if it is not 0."""
    wrong = []
    for case, run, allows in iter_runs():
        code = classify(run, allows_undecided=allows)
        page = build_markdown(run, allows_undecided=allows).decode()
        if is_red(build_junit(run, allows_undecided=allows)) != bool(code):
            wrong.append(f"JUnit: {case}: {code}")
        if (f"Exit code {code:d}:" in page) != bool(code) or (": completed" in page and code):
            wrong.append(f"Markdown: {case}: {code}")
        if bool(list_exit_reasons(run, allows_undecided=allows)) != bool(code):
            wrong.append(f"reasons: {case}: {code}")
    assert wrong == []


def test_the_first_reason_is_that_of_the_exit_code() -> None:
    """Where several apply, all are listed: 4 before 1, and 1 before 3."""
    unbalanced = Validity(flag=Flag.UNBALANCED, detail="1 is missing", requests=1)
    run = msgspec.structs.replace(
        build_threshold_run(), validity=[unbalanced], state=RunState.CANCELLED, reason="why"
    )
    assert list_exit_reasons(run) == [
        (ExitCode.UNBALANCED, "the account does not balance: 1 is missing"),
        (ExitCode.NOT_PASSED, "the threshold p99 < 1s failed"),
        (ExitCode.NOT_PASSED, "the threshold rate > 1/s over 1m is undecided"),
        (ExitCode.CUT_SHORT, "the run is cancelled: why"),
    ]


def test_a_run_that_sent_nothing_says_so_everywhere(render: Callable[..., list[str]]) -> None:
    """It has no failure that could say why it has not passed."""
    texts = {
        (0, 0, 0): "no requests were sent",
        (0, 0, 5): "no requests were sent, and 5 were due",
        (0, 5, 0): "none of 5 accounted requests were ok",
        (3, 2, 0): "",
    }
    for counts, text in texts.items():
        run = make_run(RunState.COMPLETED, counts, None)
        assert describe_nothing_ok(run) == text
        assert text in Page(build_head(run)).text
        assert text in build_markdown(run).decode()
        assert text in build_junit(run).decode()
    screen = "\n".join(render(build_summary(make_run(RunState.COMPLETED, (0, 0, 0), None))))
    assert "no requests were sent" in screen
