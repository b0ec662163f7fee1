from oku_coordinator.leasing.ranges.balance import find_excess, find_uneven, shorten
from oku_coordinator.leasing.ranges.sizing import Hands, HeldLease


def build_hands(
    worker: str, *leases: tuple[int, int], rate_rps: float | None = 100.0, most_rps: float | None = None
) -> Hands:
    """The hands of a worker with a window of 10 and leases `a`, `b` … of what is taken and where they end."""
    held = tuple(HeldLease(f"{worker}{name}", *lease) for name, lease in zip("abc", leases, strict=False))
    return Hands(worker, f"b{worker}", 10, held, rate_rps, most_rps or rate_rps or float("inf"), 0, 0)


def test_a_worker_keeps_what_it_would_do_first() -> None:
    """Its last leases are shortened first, down to nothing."""
    hands = build_hands("w", (50, 100), (0, 100), (0, 100))
    assert shorten(hands, 250) == {}
    assert shorten(hands, 120) == {"bw": {"wb": 70, "wc": 0}}
    assert shorten(hands, 0) == {"bw": {"wa": 50, "wb": 0, "wc": 0}}


def test_work_that_was_given_on_a_wrong_guess_is_asked_back() -> None:
    """Nobody keeps more than thirty seconds of it; fifteen are left."""
    assert find_excess([build_hands("w", (0, 3000))]) == {}
    assert find_excess([build_hands("w", (0, 3001))]) == {"bw": {"wa": 1500}}


def test_a_worker_without_an_answer_keeps_what_its_window_allows() -> None:
    """After ten seconds of silence a window of 10 bounds its rate to 1/s, so it keeps two windows."""
    unknown = build_hands("w", (10, 410), rate_rps=None, most_rps=1.0)
    assert find_excess([unknown]) == {"bw": {"wa": 30}}
    assert find_excess([build_hands("w", (10, 410), rate_rps=None)]) == {}
    assert find_excess([build_hands("w", (10, 40), rate_rps=None, most_rps=0.1)]) == {}


def test_all_end_together() -> None:
    """Who would end more than a second after the others gives the rest of its work back."""
    slow, fast = build_hands("s", (0, 2000), rate_rps=100.0), build_hands("f", (0, 2000), rate_rps=900.0)
    assert find_uneven([slow, fast]) == {"bs": {"sa": 400}}
    assert find_uneven([build_hands("s", (0, 400)), build_hands("f", (0, 300))]) == {}


def test_a_worker_of_which_nothing_is_known_counts_as_an_average_one() -> None:
    """One that has just come gets its part of what others have."""
    busy, new = build_hands("b", (0, 1000)), build_hands("n", rate_rps=None)
    assert find_uneven([busy, new]) == {"bb": {"ba": 500}}


def test_nobody_is_asked_when_nobody_works() -> None:
    """There is nothing to compare."""
    assert find_uneven([]) == {}
    assert find_uneven([build_hands("w", rate_rps=0.0)]) == {}
