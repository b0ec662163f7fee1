import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.kit.runs.specs import specs, user_code_specs

from oku_core.spec.load import list_stages
from oku_core.spec.load_description import describe_load, describe_shortage
from oku_core.spec.parser import Source, parse_spec
from oku_core.spec.spec import Spec

CODE = {"engine": "python", "scenario": f"a.py@sha256:{'0' * 64}:1:a.py"}


def read(values: dict[str, Any]) -> Spec:
    """Read a spec from its keys."""
    return parse_spec(Source("spec", values))


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"requests": 1000}, "100 in flight per worker, 1,000 requests"),
        (CODE | {"users": 200, "iterations": "1M"}, "200 users, 1,000,000 iterations"),
        (CODE | {"users": 1, "iterations": 1}, "1 user, 1 iteration"),
        (CODE | {"concurrency": 50, "duration": "1m"}, "50 users per worker for 1 min"),
        (CODE | {"rate": "5/s", "duration": "1m"}, "5/s for 1 min, 300 iterations"),
        (CODE | {"stages": ["1m:0..200"]}, "0 to 200 users over 1 min"),
        ({"requests": 1, "max-rate": "90/m"}, "100 in flight per worker, 1 request, at most 90/min"),
        ({"rate": "5000/s", "duration": "10m"}, "5,000/s for 10 min, 3,000,000 requests"),
        ({"rate": "5000/s", "requests": "1M"}, "5,000/s for 3 min 20 s, 1,000,000 requests"),
        ({"rate": "20/h", "duration": "1d"}, "20/h for 1 d, 480 requests"),
        ({"rate": "0.0123/s", "duration": "90s"}, "0.0123/s for 1 min 30 s, 1 request"),
        (
            {"rate": "5/s", "duration": "1.5s", "arrivals": "poisson", "warm-up": "20ms"},
            "5/s for 1.5 s, 7 requests, Poisson arrivals, including a warm-up of 20 ms",
        ),
        ({"duration": "10m", "concurrency": 200}, "200 in flight per worker for 10 min"),
        ({"duration": "1h", "requests": 500}, "100 in flight per worker for 1 h, at most 500 requests"),
        (
            {"stages": ["1m:0..5000/s", "10m:5000/s", "30s:0/s"]},
            "0 to 5,000/s over 1 min, 5,000/s for 10 min, 5,000 to 0/s over 30 s, 3,225,000 requests",
        ),
        (
            {"stages": ["1m:0..200", "150m:200"]},
            "0 to 200 in flight over 1 min, 200 in flight for 2 h 30 min",
        ),
        ({"stages": "1m:0..90/m"}, "0 to 90/min over 1 min, 45 requests"),
        ({"stages": "1m:0.0123..5/s"}, "0.0123 to 5/s over 1 min, 150 requests"),
        (
            {"stages": ["1s:1..2/s"] * 5, "warm-up": "1s"},
            "5 stages of up to 2/s, 5 s, 7 requests, including a warm-up of 1 s",
        ),
    ],
)
def test_a_load_is_told_in_words(values: dict[str, Any], words: str) -> None:
    """It says the rate or what is in flight, for how long, and how many requests, if that is known."""
    assert describe_load(read(values)) == words


@given(specs() | user_code_specs())
def test_every_load_has_words(spec: Spec) -> None:
    """They are one line."""
    assert describe_load(spec)
    assert describe_load(spec).isprintable()


@pytest.mark.parametrize(
    ("values", "workers", "latency_s", "begin", "end"),
    [
        ({"concurrency": 50}, 2, 0.02, "", ""),
        (
            {"concurrency": 50},
            2,
            0.025,
            "2 workers with 50 in flight each can sustain at most 4,000/s at a latency of 25 ms",
            "63",
        ),
        ({}, 3, 2.0, "", ""),
        (
            {},
            1,
            2.5,
            "1 worker with 10,000 in flight can sustain at most 4,000/s at a latency of 2.5 s",
            "12500",
        ),
    ],
)
def test_too_few_in_flight_for_a_rate_are_told(
    values: dict[str, Any], workers: int, latency_s: float, begin: str, end: str
) -> None:
    """By Little's law, the line says what the window holds, and how large it must be."""
    spec = read(values | {"rate": "5000/s", "duration": "1m"})
    words = f"{begin}; 5,000/s needs --concurrency {end}" if end else ""
    assert describe_shortage(spec, workers, latency_s) == words


def test_too_few_users_for_a_rate_are_told() -> None:
    """The line says how many are needed over all workers."""
    spec = read(CODE | {"rate": "100/s", "duration": "1m", "users": 20})
    assert describe_shortage(spec, 2, 0.5) == (
        "2 workers with 10 users each can sustain at most 40/s at a latency of 500 ms; 100/s needs --users 50"
    )
    assert not describe_shortage(spec, 2, 0.2)


@given(specs(), st.integers(1, 20), st.floats(1e-6, 100))
def test_what_is_said_to_be_needed_is_enough(spec: Spec, workers: int, latency_s: float) -> None:
    """With the concurrency of the line, the line is gone; with one less, it is not."""
    if not spec.is_open or not (words := describe_shortage(spec, workers, latency_s)):
        return
    peak = max(stage.peak for stage in list_stages(spec))
    needed = int(words.rpartition(" ")[2])
    assert math.isclose(needed, math.ceil(float(peak) * latency_s / workers), rel_tol=1e-9, abs_tol=1)
