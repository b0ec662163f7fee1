"""Exports a history for other tools: as JSON without secrets, as CSV, and as HdrHistogram text."""

import csv
import io
from bisect import bisect_right

import msgspec

from oku_cli.report.hgrm import build_hgrm
from oku_cli.report.history_reader import RunHistory, decode_head
from oku_cli.report.masking import mask_spec
from oku_cli.terminal.ci_commands import defuse
from oku_core.accounting.outcome import OUTCOMES
from oku_core.results.lines import build_sample_fields
from oku_core.results.sample import LIVE_QUANTILES
from oku_core.tables.time_tables import LATENCY

CSV_COLUMNS = (
    "at", "state", "seconds", "requests_total", "accounted", "leased", "pending", "done", "resent_at_most",
    "active_s", "requests_ended", "requests_sent", "requests_planned", "phase", *OUTCOMES, "bytes_received",
    "rate_rps", "in_flight", "mean_ms", *LIVE_QUANTILES, "workers", "lag_s", "clock_bound_s",
)  # fmt: skip
"""The columns as docs/metrics.md describes them; `at` is the Unix time at which a sample ended."""


def mask_head(line: bytes) -> bytes:
    """Mask the secrets in the first line of a history; no later line contains any."""
    head = decode_head(line)
    return msgspec.json.encode(msgspec.structs.replace(head, spec=mask_spec(head.spec)))[:-1]


def build_csv(history: RunHistory) -> str:
    """Write one line for each sample; unknown values are empty."""
    text = io.StringIO()
    writer = csv.DictWriter(text, CSV_COLUMNS, lineterminator="\n")
    writer.writeheader()
    states = [event for event in history.events if event.state is not None]
    for sample in history.samples:
        entered = bisect_right(states, sample.at, key=lambda event: event.at)
        state = states[entered - 1].state if entered else ""
        writer.writerow({"at": round(sample.at, 3), "state": state, **build_sample_fields(sample)})
    return defuse(text.getvalue())


def build_hgrm_text(history: RunHistory) -> str:
    """Write the latencies of the whole run as HdrHistogram text, in ms."""
    return build_hgrm(LATENCY.decode(history.summary))
