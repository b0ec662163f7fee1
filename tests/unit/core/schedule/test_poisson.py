import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.kit.schedules import list_waves, schedules

from oku_core.schedule.lane import Lane
from oku_core.schedule.poisson import draw_binomial
from oku_core.schedule.schedule import Schedule
from oku_core.schedule.stage import Arrivals, Stage


def build_random(begin: int, end: int, duration: int, seed: int) -> Schedule:
    """A schedule of one stage with random arrivals."""
    stage = Stage("stage 1", Fraction(duration), Fraction(begin), Fraction(end))
    return Schedule([stage], Arrivals.POISSON, seed)


def list_times(schedule: Schedule, lanes: int = 4) -> list[float]:
    """When all arrivals are due, in seconds and in order."""
    waves = list_waves(schedule, lambda: lanes)
    all_lanes = [Lane(schedule, wave, number) for wave in waves for number in range(lanes)]
    dues = [due for lane in all_lanes for _, due in lane.iter_dues(lane.start, lane.stop)]
    return sorted(due / 1e9 for due in dues)


def measure_distance(shares: Sequence[float]) -> float:
    """The statistic of Kolmogorov and Smirnov for numbers that should be uniform in [0, 1), times √n."""
    n = len(shares)
    ordered = sorted(shares)
    furthest = max(max(share - rank / n, (rank + 1) / n - share) for rank, share in enumerate(ordered))
    return furthest * math.sqrt(n)


@given(schedule=schedules(Arrivals.POISSON), data=st.data())
def test_blocks_have_all_arrivals(schedule: Schedule, data: st.DataObject) -> None:
    """Their numbers sum to that of the stage, and are the same in whatever order they are asked for."""
    blocks = data.draw(st.permutations(range(schedule.blocks + 1)))
    counts = {block: schedule.count_before_block(block) for block in blocks}
    again = Schedule(schedule.stages, schedule.arrivals, schedule.seed)
    rising = [again.count_before_block(block) for block in range(schedule.blocks + 1)]
    assert [counts[block] for block in range(schedule.blocks + 1)] == rising == sorted(rising)
    for segment in schedule.segments:
        assert (rising[segment.first_block], rising[segment.stop_block]) == (segment.first, segment.stop)
        if not segment.stage.area:
            assert segment.first == segment.stop


def test_the_numbers_of_blocks_need_no_sum() -> None:
    """In a schedule of a month and 2.6 trillion arrivals any second is at hand."""
    month_s = 30 * 24 * 3600
    schedule = build_random(0, 2_000_000, month_s, 3)
    middle = schedule.count_before_block(month_s // 2)
    assert middle / schedule.requests == pytest.approx(0.25, abs=1e-5)
    second = schedule.count_before_block(month_s // 2 + 1) - middle
    assert abs(second - 1_000_000) < 5 * 1000
    for probability, successes in [(0, 0), (-0.1, 0), (1, 1000), (1.5, 1000)]:
        # What is certain is not drawn. A part without area has no arrivals, and one with all of it has all.
        assert draw_binomial(1000, probability, Random(1)) == successes


@pytest.mark.parametrize(("count", "probability"), [(12, 0.5), (60, 0.2), (60, 0.97)])
def test_draws_have_a_binomial_distribution(count: int, probability: float) -> None:
    """Chi-square over all numbers that are likely enough."""
    chance, draws = Random(5), 20_000
    seen = Counter(draw_binomial(count, probability, chance) for _ in range(draws))
    chi_square, classes = 0.0, 0
    for successes in range(count + 1):
        failures = count - successes
        odds = math.comb(count, successes) * probability**successes * (1 - probability) ** failures
        if odds * draws >= 10:
            chi_square += (seen[successes] - odds * draws) ** 2 / (odds * draws)
            classes += 1
    assert classes >= 8
    assert chi_square < classes + 4 * math.sqrt(2 * classes)


def test_draws_of_many_have_the_moments_of_a_binomial_distribution() -> None:
    """Also where the trials can't be counted one by one."""
    count, probability, draws, chance = 10**9, 0.3, 4000, Random(6)
    deviation = math.sqrt(count * probability * (1 - probability))
    scaled = [
        (draw_binomial(count, probability, chance) - count * probability) / deviation for _ in range(draws)
    ]
    assert abs(sum(scaled) / draws) < 4 / math.sqrt(draws)
    assert abs(sum(z * z for z in scaled) / draws - 1) < 4 * math.sqrt(2 / draws)


@pytest.mark.heavy
@pytest.mark.parametrize("seed", [1, 7, 2**63])
@pytest.mark.parametrize(("begin", "end"), [(200, 200), (0, 400), (400, 0)])
def test_the_arrivals_are_those_of_a_poisson_process(begin: int, end: int, seed: int) -> None:
    """Under the area of the rate they lie uniformly, and their distances are exponential."""
    schedule = build_random(begin, end, 60, seed)
    segment = schedule.segments[0]
    times = list_times(schedule)
    assert len(times) == schedule.requests == 12_000
    areas = [float(segment.area_before(Fraction(time))) for time in times]
    assert measure_distance([area / 12_000 for area in areas]) < 1.95  # 0.999 of all
    assert measure_distance([1 - math.exp(before - after) for before, after in pairwise(areas)]) < 1.95


@pytest.mark.parametrize("cells", [30, 600, 6000])
def test_counts_are_dispersed_as_they_should(cells: int) -> None:
    """From cells of a hundredth to some seconds, the variance of the counts is their mean."""
    times = list_times(build_random(200, 200, 60, 11))
    counts = Counter(int(time / 60 * cells) for time in times)
    mean = len(times) / cells
    dispersion = sum((counts[cell] - mean) ** 2 for cell in range(cells)) / mean
    assert abs(dispersion - (cells - 1)) < 3.5 * math.sqrt(2 * (cells - 1))


def test_lanes_are_fair_shares() -> None:
    """In each second none has more than one arrival more than another, and none comes earlier."""
    schedule = build_random(300, 300, 40, 2)
    shares: list[list[float]] = [[] for _ in range(3)]
    for wave in list_waves(schedule, lambda: 3):
        for number, share in enumerate(shares):
            lane = Lane(schedule, wave, number)
            share += [due / 1e9 for _, due in lane.iter_dues(lane.start, lane.stop)]
    for second in range(40):
        counts = [sum(int(time) == second for time in share) for share in shares]
        assert max(counts) - min(counts) <= 1
    for share in shares:
        assert measure_distance([time % 1 for time in share]) < 1.95
    # Another seed gives other times. And the same one the same.
    one, other, again = (list_times(build_random(50, 50, 4, seed)) for seed in (1, 2, 1))
    assert one == again != other
