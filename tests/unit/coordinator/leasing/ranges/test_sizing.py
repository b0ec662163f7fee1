import pytest

from oku_coordinator.leasing.ranges.sizing import (
    Hands,
    HeldLease,
    choose_sizes,
    find_full,
    find_most_held,
    find_weight,
    size_lease,
)


def build_hands(
    worker: str = "w1", *, untaken: int = 0, rate_rps: float | None = None, window: int = 100, taken: int = 0
) -> Hands:
    """The hands of a worker with at most one lease."""
    leases = (HeldLease(f"lease of {worker}", 50, 50 + untaken),) if untaken else ()
    return Hands(worker, f"b{worker}", window, leases, rate_rps, rate_rps or float("inf"), taken, 0)


def choose(
    *hands: Hands, pending: int = 10**9, range_size: int | None = None, most: int = 100
) -> list[tuple[str, int]]:
    """Who gets how much, if these are all workers."""
    weight = sum(find_weight(each, None) for each in hands)
    chosen = choose_sizes(hands, pending, weight=weight, range_size=range_size, most=most)
    return [(each.worker, size) for each, size in chosen]


@pytest.mark.parametrize(
    ("rate_rps", "taken", "full"),
    [(None, 0, 400), (None, 10_000, 10_000), (5000.0, 10**6, 50_000), (3.3, 100, 200)],
)
def test_hands_are_full_with_ten_seconds_of_untaken_work(
    rate_rps: float | None, taken: int, full: int
) -> None:
    """Never with less than two windows; while the rate is unknown, with as much as was done so far."""
    assert find_full(build_hands(rate_rps=rate_rps, taken=taken)) == full


@pytest.mark.parametrize(("silence_s", "full"), [(0.5, 10_000), (1.0, 10_000), (5.0, 14_000), (30.0, 20_000)])
def test_hands_hold_what_may_be_done_unheard_as_well(silence_s: float, full: int) -> None:
    """Else workers that speak seldom would be done before they are heard."""
    assert find_full(build_hands(rate_rps=1000.0, taken=10**6)._replace(silence_s=silence_s)) == full


@pytest.mark.parametrize(
    ("rate_rps", "taken", "share", "size"),
    [
        (None, 0, 10**9, 100),
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
    """It is a window while nothing is known, shrinks with the space, and is never tiny or huge."""
    assert size_lease(build_hands(rate_rps=rate_rps, taken=taken), share) == size


def test_a_worker_gets_as_many_leases_as_fill_its_hands() -> None:
    """Those of a worker of which nothing is known are a window each."""
    assert choose(build_hands()) == [("w1", 100)] * 4
    assert choose(build_hands(untaken=200)) == [("w1", 100)] * 2
    assert choose(build_hands(untaken=400)) == []
    assert choose(build_hands(rate_rps=5000.0, untaken=49_999)) == [("w1", 50_000)]
    assert choose(build_hands(rate_rps=5000.0, untaken=50_000)) == []


def test_small_ranges_fill_the_window_all_the_same() -> None:
    """As many leases as needed are given, up to a number that messages can carry."""
    assert choose(build_hands(), range_size=10) == [("w1", 10)] * 40
    assert len(choose(build_hands(window=10_000), range_size=1, most=10_000)) == 1000


@pytest.mark.parametrize(
    ("window", "range_size", "most"),
    [(100, None, 300), (100, 10, 300), (1000, 10, 300), (2000, 10, 600), (10**5, 1, 1000)],
)
def test_leases_that_a_spec_makes_small_may_be_many(window: int, range_size: int | None, most: int) -> None:
    """One window of them is in flight and two can be taken, as far as messages can carry them."""
    assert find_most_held(window, range_size) == most


def test_all_workers_take_part_in_a_small_run() -> None:
    """2,000 requests for eight workers with windows of 500: each gets its share."""
    chosen = choose(*(build_hands(f"w{number}", window=500) for number in range(8)), pending=2000)
    given: dict[str, int] = {}
    for worker, size in chosen:
        given[worker] = given.get(worker, 0) + size
    assert sum(given.values()) == 2000
    assert len(given) == 8
    assert max(given.values()) - min(given.values()) <= 50


def test_the_emptiest_hands_are_filled_first() -> None:
    """Empty is meant for the rate of each."""
    slow, fast = (
        build_hands("slow", untaken=500, rate_rps=100.0),
        build_hands("fast", untaken=1000, rate_rps=1000.0),
    )
    assert choose(slow, fast, most=1) == [("fast", 10_000)]


def test_near_the_end_shares_follow_the_rates() -> None:
    """A fast worker gets the larger part of what is left, so that all end together."""
    chosen = choose(
        build_hands("slow", rate_rps=250.0), build_hands("fast", rate_rps=5000.0), pending=10_500, most=2
    )
    assert sorted(chosen) == [("fast", 4881), ("slow", 250)]


def test_no_more_is_given_than_is_pending() -> None:
    """The last lease is smaller, and there is none after it."""
    assert choose(build_hands(), pending=150, range_size=100) == [("w1", 100), ("w1", 50)]
