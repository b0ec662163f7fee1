import io
import math
import random

import pytest
from hdrh.histogram import HdrHistogram
from hdrh.iterators import PercentileIterator
from tests.kit.histograms import make_latency

from oku_cli.report.hgrm import build_hgrm, build_percentile_rows
from oku_core.accounting.histogram import HIGHEST_US, HistogramSnapshot


class OriginalIterator(PercentileIterator):  # type: ignore[misc]
    """Takes the steps of the Java HdrHistogram, whose rounding the Python package lacks."""

    def increment_iteration_level(self) -> None:
        """Step as `PercentileIterator` of the Java HdrHistogram does."""
        gap = 100.0 - self.percentile_to_iterate_to
        if gap:
            half_distance = 2 ** (int(math.log(100 / gap) / math.log(2)) + 1)
            self.percentile_to_iterate_to += 100.0 / (self.percentile_ticks_per_half_distance * half_distance)


class Oracle(HdrHistogram):  # type: ignore[misc]
    """The Python package with the steps of the Java original."""

    def get_percentile_iterator(self, ticks_per_half_distance: int) -> OriginalIterator:
        """Return the iterator that `output_percentile_distribution` uses."""
        return OriginalIterator(self, ticks_per_half_distance)


def draw_values(count: int) -> list[int]:
    """Draw latencies like those of a service, some of them very long."""
    rng = random.Random(count)
    return [round(rng.lognormvariate(10.6, 0.5)) for _ in range(count)] + [3_000_000] * (count // 500)


def write_with_oracle(values: list[int]) -> list[str]:
    """Return what the package writes, in ms."""
    oracle = Oracle(1, HIGHEST_US, 3)
    for value in values:
        oracle.record_value(value)
    out = io.BytesIO()
    oracle.output_percentile_distribution(out, 1000, 5)
    return out.getvalue().decode().splitlines()


def _bound(line: str, max_us: int) -> str:
    """A row with its value bounded by the exact maximum, which the package does not keep."""
    value, rest = line[:12], line[12:]
    return f"{min(float(value), max_us / 1000):12.3f}{rest}" if value.strip()[:1].isdigit() else line


@pytest.mark.parametrize("values", [[1], [40_000], [7, 7, 7], draw_values(9), draw_values(5000)])
def test_the_rows_are_those_of_hdrhistogram(values: list[int]) -> None:
    """The heading and the percentiles are the same to the letter; the last bucket ends at the maximum."""
    lines = build_hgrm(make_latency(values)).splitlines()
    expected = [_bound(line, max(values)) for line in write_with_oracle(values)[:-3]]
    assert lines[:-3] == expected


def test_the_footer_and_the_last_row_are_those_of_hdrhistogram() -> None:
    """The package writes the deviation in µs and the count as a fraction; the Java original does not."""
    values = draw_values(5000)
    oracle = HdrHistogram(1, HIGHEST_US, 3)
    for value in values:
        oracle.record_value(value)
    mean, highest, sizes = build_hgrm(make_latency(values)).splitlines()[-3:]
    assert mean == (
        f"#[Mean    = {oracle.get_mean_value() / 1000:12.3f}, "
        f"StdDeviation   = {oracle.get_stddev() / 1000:12.3f}]"
    )
    assert highest == (
        f"#[Max     = {max(values) / 1000:12.3f}, Total count    = {oracle.get_total_count():12d}]"
    )
    assert sizes == write_with_oracle([1])[-1]
    # The last row counts every latency. It is the only row at 100 %.
    *_, before, last = build_percentile_rows(make_latency(draw_values(5000)))
    assert (last.level, last.total) == (1.0, 5010)
    assert before.level < 1
    # An empty histogram has a heading and no rows. A run without any answer can be exported.
    assert list(build_percentile_rows(HistogramSnapshot())) == []
    assert len(build_hgrm(HistogramSnapshot()).splitlines()) == 5
