"""Exports for other tools: a history without secrets, samples as CSV, latencies as HdrHistogram text."""

import base64
import csv
import io
from bisect import bisect_right

import msgspec

from oku_cli.report.hgrm import build_hgrm
from oku_cli.report.masking import mask_spec
from oku_cli.report.run_history import RunHistory, decode_head
from oku_core.accounting import hdr
from oku_core.accounting.histogram import HistogramSnapshot
from oku_core.accounting.outcome import OUTCOMES
from oku_core.results.lines import build_sample_fields
from oku_core.results.sample import QUANTILES
from oku_core.results.summary import Summary

CSV_COLUMNS = (
    "at", "state", "seconds", "requests_total", "accounted", "leased", "pending", "done", "resent_at_most",
    "active_s", "requests_ended", *OUTCOMES, "bytes_received", "rate_rps", "in_flight", "mean_ms", *QUANTILES,
    "workers", "lag_s",
)  # fmt: skip
"""As docs/metrics.md has them; `at` is the Unix time of the end of a sample."""


def mask_head(line: bytes) -> bytes:
    """The first line of the history of a run without secrets; nothing after it has any."""
    head = decode_head(line)
    return msgspec.json.encode(msgspec.structs.replace(head, spec=mask_spec(head.spec)))[:-1]


def build_csv(history: RunHistory) -> str:
    """A line for each sample; what is not known is empty."""
    text = io.StringIO()
    writer = csv.DictWriter(text, CSV_COLUMNS, lineterminator="\n")
    writer.writeheader()
    states = [event for event in history.events if event.state is not None]
    for sample in history.samples:
        entered = bisect_right(states, sample.at, key=lambda event: event.at)
        state = states[entered - 1].state if entered else ""
        writer.writerow({"at": round(sample.at, 3), "state": state, **build_sample_fields(sample)})
    return text.getvalue()


def build_hgrm_text(history: RunHistory) -> str:
    """The latencies of the whole run, in ms."""
    return build_hgrm(_decode(history.summary))


def decode_latency(summary: Summary) -> HistogramSnapshot:
    """The latencies of a run with their exact ends, for which the exchange format has no place."""
    latency = _decode(summary)
    exact = summary.latency_ms
    if exact.min is None or exact.max is None:
        return latency
    return msgspec.structs.replace(latency, min_us=round(exact.min * 1000), max_us=round(exact.max * 1000))


def _decode(summary: Summary) -> HistogramSnapshot:
    return hdr.decode(base64.b64decode(summary.histogram))
