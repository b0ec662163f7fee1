"""What other load generators report of a run, as far as they do: requests, p50, p99, the slowest one."""

import json
import re
from typing import Any

import msgspec

_UNITS_MS = {"us": 1e-3, "ms": 1.0, "s": 1e3, "m": 6e4}


class Reported(msgspec.Struct, frozen=True, kw_only=True):
    """What a tool said; None for what it does not say.

    Attributes:
        requests: that it made.
        p50_ms: the median of what it calls latency.
        p99_ms: the p99 of the same.
        max_ms: the largest of them.
        left_out: requests of the plan that it says it did not make.
    """

    requests: int
    p50_ms: float | None = None
    p99_ms: float | None = None
    max_ms: float | None = None
    left_out: int | None = None


def read_wrk2(text: str) -> Reported:
    """The text of `wrk2 --latency`; it looks at no latency in its first ten seconds."""
    quantiles = {
        float(percent): float(value) * _UNITS_MS[unit]
        for percent, value, unit in re.findall(r"^ *([\d.]+)% +([\d.]+)(us|ms|s|m) *$", text, re.MULTILINE)
    }
    return Reported(
        requests=int(_find(r"(\d+) requests in", text)),
        p50_ms=_round(quantiles.get(50.0)),
        p99_ms=_round(quantiles.get(99.0)),
        max_ms=_round(quantiles.get(100.0)),
    )


def read_h2load(text: str) -> Reported:
    """The text of h2load, which has no percentiles."""
    value, unit = re.findall(r"time for request: +\S+ +([\d.]+)(us|ms|s|m)", text)[0]
    return Reported(
        requests=int(_find(r"requests: \d+ total, \d+ started, (\d+) done", text)),
        max_ms=_round(float(value) * _UNITS_MS[unit]),
    )


def read_hey(text: str) -> Reported:
    """The text of hey."""
    seconds = {name: float(value) for name, value in re.findall(r"(50|99)%+ in ([\d.]+) secs", text)}
    return Reported(
        requests=sum(int(count) for count in re.findall(r"\[2\d\d\]\s+(\d+) responses", text)),
        p50_ms=_round(seconds["50"] * 1e3),
        p99_ms=_round(seconds["99"] * 1e3),
        max_ms=_round(float(_find(r"Slowest:\s+([\d.]+) secs", text)) * 1e3),
    )


def read_oha(text: str) -> Reported:
    """The JSON of oha."""
    document = json.loads(text)
    quantiles = document["latencyPercentiles"]
    return Reported(
        requests=sum(document["statusCodeDistribution"].values()),
        p50_ms=_round(quantiles["p50"] * 1e3),
        p99_ms=_round(quantiles["p99"] * 1e3),
        max_ms=_round(document["summary"]["slowest"] * 1e3),
    )


def read_vegeta(text: str) -> Reported:
    """The JSON of `vegeta report`."""
    document = json.loads(text)
    latencies = document["latencies"]
    return Reported(
        requests=document["requests"],
        p50_ms=_round(latencies["50th"] / 1e6),
        p99_ms=_round(latencies["99th"] / 1e6),
        max_ms=_round(latencies["max"] / 1e6),
    )


def read_fortio(text: str) -> Reported:
    """The JSON of fortio."""
    histogram = json.loads(text)["DurationHistogram"]
    quantiles = {each["Percentile"]: each["Value"] * 1e3 for each in histogram["Percentiles"]}
    return Reported(
        requests=histogram["Count"],
        p50_ms=_round(quantiles[50]),
        p99_ms=_round(quantiles[99]),
        max_ms=_round(histogram["Max"] * 1e3),
    )


def read_k6(text: str) -> Reported:
    """The JSON of `k6 run --summary-export`."""
    metrics: dict[str, dict[str, Any]] = json.loads(text)["metrics"]
    duration = metrics["http_req_duration"]
    return Reported(
        requests=metrics["http_reqs"]["count"],
        p50_ms=_round(duration["med"]),
        p99_ms=_round(duration["p(99)"]),
        max_ms=_round(duration["max"]),
        left_out=metrics.get("dropped_iterations", {}).get("count", 0),
    )


def _find(pattern: str, text: str) -> str:
    match = re.search(pattern, text)
    assert match is not None, f"{pattern!r} is not in {text[-500:]!r}"
    return match[1]


def _round(value: float | None) -> float | None:
    return None if value is None else round(value, 3)
