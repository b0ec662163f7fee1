from oku_coordinator.leasing.pace import Pace, choose_checkpoint_s
from oku_core.spec.spec import Engine, Spec

WINDOW = 100
USER_CODE = Spec(engine=Engine.PYTHON)


def allow(pace: Pace) -> int:
    """What a worker of 1,000/s may be ahead that has taken a million."""
    return pace.choose_allowance(Spec(), WINDOW, rate_rps=1_000, taken=1_000_000)


def test_checkpoints_come_every_three_seconds_and_more_seldom_from_many_workers() -> None:
    """All workers together send no more than 200 a second, and towards 50 when they are very many."""
    many = (1, 600, 1_000, 2_000, 3_000, 10_000)
    assert [choose_checkpoint_s(workers) for workers in many] == [3, 3, 5, 10, 30, 170]


def test_for_half_a_minute_after_a_loss_workers_go_about_a_second_ahead() -> None:
    """Otherwise as far as it takes until a coordinator that restarts is back; many workers go further."""
    pace = Pace()
    pace.adjust(2, now=100.0)
    assert allow(pace) == 12_000
    # At the start it is ten windows, then half a second of its work.
    assert [pace.choose_allowance(Spec(), WINDOW, rate_rps=rps, taken=50) for rps in (0, 9e3)] == [1000, 4500]
    assert pace.choose_allowance(USER_CODE, WINDOW, rate_rps=1_000, taken=1_000_000) == 1_050
    assert pace.choose_allowance(USER_CODE, WINDOW, rate_rps=1_000, taken=300) == 600
    pace.record_loss(101.0)
    pace.adjust(2, now=101.0)
    assert allow(pace) == 1_050
    assert pace.choose_allowance(Spec(), WINDOW, rate_rps=1_000, taken=900) == 450
    pace.adjust(2_000, now=130.9)
    assert allow(pace) == 15_000
    assert pace.choose_allowance(USER_CODE, WINDOW, rate_rps=1_000, taken=1_000_000) == 15_000
    pace.adjust(3_000, now=130.9)
    assert allow(pace) == 1.5 * 30 * 1_000
    pace.adjust(1, now=130.9)
    assert allow(pace) == 1_050
    pace.adjust(2, now=131.1)
    assert allow(pace) == 12_000
