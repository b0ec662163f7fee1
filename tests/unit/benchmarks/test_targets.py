from oku_benchmarks.counting_server import Sample
from oku_benchmarks.targets import find_duration_s, find_full_seconds


def build_samples(working: list[int], *, ends: int) -> list[Sample]:
    """Ten samples a second after half a second without any request; `ends` indices come within their time."""
    idle = [Sample(at=9.5 + i / 10, received=0, distinct=0, answered=0, open=0, working=0) for i in range(5)]
    busy = [
        Sample(
            at=10 + i / 10,
            received=1 + i,
            distinct=1 + i * ends // len(working),
            answered=i,
            open=slots,
            working=slots,
        )
        for i, slots in enumerate(working)
    ]
    return idle + busy


def test_full_seconds_are_whole_seconds_in_which_indices_were_untaken() -> None:
    """What comes before the first request and after the last index does not count."""
    samples = build_samples([10] * 10 + [0] * 10 + [10] * 10 + [0] * 10, ends=40)
    assert find_full_seconds(samples, indices=31, window=10) == (2, 3)


def test_a_second_is_full_with_97_percent_of_the_window_in_its_mean() -> None:
    """One slot of a hundred that never works is allowed, four are not."""
    assert find_full_seconds(build_samples([99] * 20, ends=20), indices=20, window=100)[0] == 1
    assert find_full_seconds(build_samples([96] * 20, ends=20), indices=20, window=100)[0] == 0


def test_a_run_lasts_from_its_first_request_until_none_waits_for_an_answer() -> None:
    """The half second before it does not count."""
    assert round(find_duration_s(build_samples([1] * 30 + [0] * 10, ends=40)), 6) == 2.9
