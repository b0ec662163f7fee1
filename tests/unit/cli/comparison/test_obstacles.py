from collections.abc import Callable
from typing import Any

import pytest
from tests.kit.runs.compared import SPEC
from tests.kit.runs.summaries import make_outcomes

from oku_cli.comparison.obstacles import SpecDifference, describe_value, list_differences, list_obstacles
from oku_cli.comparison.run_seconds import RunSeconds
from oku_cli.report.masking import mask_spec
from oku_core.accounting.run_state import RunState
from oku_core.summary.latency_summary import LatencySummary
from oku_core.summary.validity import Flag, Validity

SATURATED = Validity(flag=Flag.WORKER_SATURATED, detail="workers were busy", requests=5, share=0.1)
UNBALANCED = Validity(flag=Flag.UNBALANCED, detail="it does not add up", requests=5, share=0.1)
LOST = Validity(flag=Flag.WORKER_LOST, detail="a worker died", requests=5)


def find(first: RunSeconds, second: RunSeconds, *despite: str) -> list[str]:
    """What stands in the way of judging two runs."""
    return list(list_obstacles(first, second, list_differences(first.spec, second.spec, dict), despite))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("url", ["http://other/"]),
        ("method", "PUT"),
        ("engine", "httptools"),
        ("rate", "5/s"),
        ("concurrency", 7),
    ],
)
def test_specs_have_to_ask_for_the_same(make_run: Callable[..., RunSeconds], key: str, value: Any) -> None:
    """Unless a user says that this is what is compared."""
    first, second = make_run(1), make_run(2, spec={**SPEC, key: value})
    assert find(first, second) == [
        f"their specs differ in {key}; to judge them all the same: --despite {key}"
    ]
    assert find(first, second, key) == []


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"validity": [SATURATED]}, "B has the flag worker_saturated: workers were busy"),
        ({"validity": [UNBALANCED]}, "B has the flag unbalanced: it does not add up"),
        ({"state": RunState.RUNNING}, "B is running"),
        ({"seconds": 12}, "B has 12 s of samples, 30 s are needed for an interval"),
        (
            {"outcomes": make_outcomes(ok=5850, unexpected_status=150)},
            "100 % of A and 97.50 % of B are ok: their answers are not the same",
        ),
        (
            {"outcomes": make_outcomes(ok=5950, not_sent=65), "accounted": 6015},
            "B did not send, or lost, 1.08 % of its requests",
        ),
    ],
)
def test_what_is_wrong_with_a_run_is_said(
    make_run: Callable[..., RunSeconds], changes: dict[str, Any], message: str
) -> None:
    """Each in one line that names the run."""
    assert message in find(make_run(1), make_run(2, **changes))


def test_unanswered_requests_have_no_latency(make_run: Callable[..., RunSeconds]) -> None:
    """Those that time out would be the slowest; a run without any answer has no quantile."""
    second = make_run(2, outcomes=make_outcomes(ok=5900, timeout=100))
    assert find(make_run(1), second)[0] == "B has no answer, and so no latency, for 1.67 % of what it sent"
    first = make_run(1)
    empty = make_run(2, latency_ms=LatencySummary())
    assert "B has no answers" in find(first, empty)
    # Nothing stands between two runs of one spec.
    other = {**SPEC, "name": "b", "requests": 9000, "workers": 3, "seed": 4}
    assert find(make_run(1), make_run(2, spec=other, validity=[LOST])) == []
    assert find(make_run(1), make_run(1)) == ["A and B are the same run"]


def test_differences_are_listed_key_by_key() -> None:
    """A key that a spec does not have is None; secrets differ without being shown."""
    first, second = (
        {"method": "GET", "requests": 5, "timeout": 1.0},
        {"method": "GET", "requests": 6, "rate": "5/s"},
    )
    assert list_differences(first, second, dict) == [
        SpecDifference(key="requests", a=5, b=6),
        SpecDifference(key="timeout", a=1.0, b=None),
        SpecDifference(key="rate", a=None, b="5/s"),
    ]
    (found,) = list_differences({"body": "secret-1"}, {"body": "secret-2"}, mask_spec)
    assert found == SpecDifference(key="body", a="***", b="***")


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "-"), ("a", "a"), (["a"], "a"), (["a", "b"], '["a", "b"]'), (True, "true"), (0.5, "0.5")],
)
def test_a_value_is_one_line(value: object, text: str) -> None:
    """A list of one is that one."""
    assert describe_value(value) == text
