from oku_benchmarks.stacks.counting_server import Sample
from oku_benchmarks.stacks.counting_target import count_twice, find_duration_s, find_seconds


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


def test_the_share_of_full_seconds_is_of_whole_seconds_in_which_indices_were_untaken() -> None:
    """What comes before the first request and after the last index does not count."""
    full_empty_full_drained = [10] * 10 + [0] * 10 + [10] * 10 + [0] * 10
    samples = build_samples(full_empty_full_drained, ends=40)

    seconds = find_seconds(samples, indices=31, window=10)

    assert seconds.working == [10, 0, 10]
    assert seconds.full_share == 2 / 3
    assert seconds.longest_idle_s == 1


def test_a_second_is_full_with_97_percent_of_the_window_in_its_mean() -> None:
    """One slot of a hundred that never works is allowed, four are not."""
    assert find_seconds(build_samples([99] * 20, ends=20), indices=20, window=100).full_share == 1
    assert find_seconds(build_samples([96] * 20, ends=20), indices=20, window=100).full_share == 0


def test_a_run_lasts_from_its_first_request_until_none_waits_for_an_answer() -> None:
    """A second run against the same target begins after what the first one sent."""
    samples = build_samples([1] * 30 + [0] * 10, ends=40)
    assert round(find_duration_s(samples), 6) == 2.9
    assert round(find_duration_s(samples, received=10), 6) == 1.9


def test_what_was_sent_twice_is_what_came_for_an_index_that_had_come_before() -> None:
    """However often it came."""
    assert count_twice(Sample(at=0.0, received=12, distinct=9, answered=9, open=0, working=0)) == 3
