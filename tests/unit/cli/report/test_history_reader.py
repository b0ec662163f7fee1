from typing import Any

import pytest

from oku_cli.report.history_reader import read_load
from oku_core.spec.parser import Source, build_mapping, parse_spec


@pytest.mark.parametrize(
    "load",
    [
        {"rate": "100/s", "duration": "10s", "arrivals": "poisson", "seed": 7},
        {"stages": ["up=1m:0..50/s", "30s:0/s"], "warm-up": "10s", "late": "send", "concurrency": 20},
        {"stages": ["1m:0..50"]},
        {"duration": "10s", "url": "http://h/"},
        {"requests": 5, "max-rate": "2/s", "url": "http://h/", "header": ["A: ***"]},
    ],
)
def test_the_load_of_a_spec_is_read_back(load: dict[str, Any]) -> None:
    """What has nothing to do with it, such as a masked header, does not matter."""
    spec = parse_spec(Source(None, load))
    read = read_load(build_mapping(spec))
    assert read is not None
    for name in ("requests", "rate", "duration_s", "stages", "arrivals", "late", "warm_up_s", "max_rate"):
        assert getattr(read, name) == getattr(spec, name)
    assert read.find_window(3) == spec.find_window(3)


def test_a_load_that_is_not_understood_is_none() -> None:
    """A newer coordinator may know shapes that this version does not."""
    assert read_load({"stages": ["sine=1m:0..50/s~10s"]}) is None
