import pytest

from oku_core.thresholds.threshold_summary import ThresholdVerdict, sum_up

_PASSED, _FAILED, _UNDECIDED = ThresholdVerdict


@pytest.mark.parametrize(
    ("verdicts", "is_nothing_ok", "verdict"),
    [
        ([], False, None),
        ([], True, _FAILED),
        ([_PASSED, _PASSED], False, _PASSED),
        ([_PASSED, _PASSED], True, _FAILED),
        ([_PASSED, _UNDECIDED], False, _UNDECIDED),
        ([_UNDECIDED, _FAILED, _PASSED], False, _FAILED),
    ],
)
def test_a_run_has_passed_if_all_of_its_thresholds_have(
    verdicts: list[ThresholdVerdict],
    is_nothing_ok: bool,  # noqa: FBT001  # a parameter of the test
    verdict: ThresholdVerdict | None,
) -> None:
    """One that failed outweighs one that is undecided, and nothing that was ok outweighs all."""
    assert sum_up(verdicts, is_nothing_ok=is_nothing_ok) is verdict
