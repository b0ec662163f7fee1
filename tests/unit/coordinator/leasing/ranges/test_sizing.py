import pytest

from oku_coordinator.leasing.ranges.sizing import (
    Backlog,
    choose_sizes,
    find_excess,
    find_full,
    find_uneven,
    find_weight,
    size_lease,
    trim_backlog,
)


def build_backlog(
    worker: str = "w1", *, untaken: int = 0, rate_rps: float | None = None, window: int = 100, taken: int = 0
) -> Backlog:
    """The backlog of a worker with at most one lease."""
    leases = {f"lease of {worker}": (50, 50 + untaken)} if untaken else {}
    return Backlog(worker, f"b{worker}", window, leases, rate_rps, rate_rps or float("inf"), taken, 0)


def choose(
    *backlogs: Backlog, pending: int = 10**9, range_size: int | None = None, most: int = 100
) -> list[tuple[str, int]]:
    """Who gets how much, if these are all workers."""
    weight = sum(find_weight(each, None) for each in backlogs)
    chosen = choose_sizes(backlogs, pending, weight=weight, range_size=range_size, most=most)
    return [(each.worker, size) for each, size in chosen]


@pytest.mark.parametrize(
    ("rate_rps", "taken", "full"),
    [(None, 0, 1000), (None, 10_000, 10_000), (5000.0, 10**6, 50_000), (3.3, 100, 200)],
)
def test_a_backlog_is_full_with_ten_seconds_of_untaken_work(
    rate_rps: float | None, taken: int, full: int
) -> None:
    """Never with less than two windows; while the rate is unknown, with as much as was done so far."""
    backlog = build_backlog(rate_rps=rate_rps, taken=taken)
    assert find_full(backlog) == full
    # The first checkpoint reports a rate before the first heartbeat does: a second of work follows it.
    assert find_full(backlog._replace(early_rps=20_000.0)) == (20_000 if rate_rps is None else full)


@pytest.mark.parametrize(("silence_s", "full"), [(0.5, 10_000), (1.0, 10_000), (5.0, 14_000), (30.0, 20_000)])
def test_a_backlog_holds_what_may_be_done_unheard_as_well(silence_s: float, full: int) -> None:
    """Else workers that speak seldom would be done before they are heard."""
    assert find_full(build_backlog(rate_rps=1000.0, taken=10**6)._replace(silence_s=silence_s)) == full


@pytest.mark.parametrize(
    ("rate_rps", "taken", "share", "size"),
    [
        (None, 0, 10**9, 250),
        (None, 5000, 10**9, 2500),
        (None, 0, 3, 10),
        (5000.0, 10**6, 10**9, 50_000),
        (5000.0, 10**6, 7000, 7000),
        (5000.0, 10**6, 10, 2500),
        (3.3, 100, 10**9, 100),
        (1e9, 10**6, 10**12, 2_000_000),
    ],
)
def test_a_lease_lasts_about_ten_seconds(rate_rps: float | None, taken: int, share: int, size: int) -> None:
    """It is a few windows while nothing is known, shrinks with the space, and is never tiny or huge."""
    assert size_lease(build_backlog(rate_rps=rate_rps, taken=taken), share) == size


def test_a_worker_gets_as_many_leases_as_fill_its_hands() -> None:
    """Those of a worker of which nothing is known are two windows and a half each."""
    assert choose(build_backlog()) == [("w1", 250)] * 4
    assert choose(build_backlog(untaken=500)) == [("w1", 250)] * 2
    assert choose(build_backlog(untaken=1000)) == []
    assert choose(build_backlog(rate_rps=5000.0, untaken=49_999)) == [("w1", 50_000)]
    assert choose(build_backlog(rate_rps=5000.0, untaken=50_000)) == []


def test_the_shortest_backlog_is_filled_first() -> None:
    """Empty is meant for the rate of each."""
    slow, fast = (
        build_backlog("slow", untaken=500, rate_rps=100.0),
        build_backlog("fast", untaken=1000, rate_rps=1000.0),
    )
    assert choose(slow, fast, most=1) == [("fast", 10_000)]


def test_near_the_end_shares_follow_the_rates() -> None:
    """A fast worker gets the larger part of what is left, so that all end together."""
    chosen = choose(
        build_backlog("slow", rate_rps=250.0), build_backlog("fast", rate_rps=5000.0), pending=10_500, most=2
    )
    assert sorted(chosen) == [("fast", 4881), ("slow", 250)]


def build_leased(
    worker: str, *leases: tuple[int, int], rate_rps: float | None = 100.0, most_rps: float | None = None
) -> Backlog:
    """A backlog with a window of 10 and leases `a`, `b` …, each of what is taken and where it ends."""
    held = {f"{worker}{name}": lease for name, lease in zip("abc", leases, strict=False)}
    return Backlog(worker, f"b{worker}", 10, held, rate_rps, most_rps or rate_rps or float("inf"), 0, 0)


def test_a_worker_keeps_what_it_would_do_first() -> None:
    """Its last leases are shortened first, down to nothing."""
    backlog = build_leased("w", (50, 100), (0, 100), (0, 100))
    assert trim_backlog(backlog, 250) == {}
    assert trim_backlog(backlog, 120) == {"bw": {"wb": 70, "wc": 0}}
    assert trim_backlog(backlog, 0) == {"bw": {"wa": 50, "wb": 0, "wc": 0}}


def test_work_that_was_given_on_a_wrong_guess_is_asked_back() -> None:
    """Nobody keeps more than thirty seconds of it; fifteen are left."""
    assert find_excess([build_leased("w", (0, 3000))]) == {}
    assert find_excess([build_leased("w", (0, 3001))]) == {"bw": {"wa": 1500}}


def test_a_worker_without_an_answer_keeps_what_its_window_allows() -> None:
    """After ten seconds of silence a window of 10 bounds its rate to 1/s, so it keeps two windows."""
    unknown = build_leased("w", (10, 410), rate_rps=None, most_rps=1.0)
    assert find_excess([unknown]) == {"bw": {"wa": 30}}
    assert find_excess([build_leased("w", (10, 410), rate_rps=None)]) == {}
    assert find_excess([build_leased("w", (10, 40), rate_rps=None, most_rps=0.1)]) == {}


def test_a_worker_of_which_nothing_is_known_counts_as_an_average_one() -> None:
    """One that has just come gets its part of what others have."""
    busy, new = build_leased("b", (0, 1000)), build_leased("n", rate_rps=None)
    assert find_uneven([busy, new]) == {"bb": {"ba": 500}}


def test_nobody_is_asked_when_nobody_works() -> None:
    """There is nothing to compare."""
    assert find_uneven([]) == {}
    assert find_uneven([build_leased("w", rate_rps=0.0)]) == {}
