"""A dossier for other tools: without secrets, its seconds as CSV, its latencies as HdrHistogram text."""

import base64
import csv
import io
from collections.abc import Mapping
from typing import Any

import msgspec

from oku_cli.report.hgrm import build_hgrm
from oku_cli.report.masking import mask_spec
from oku_cli.report.run_history import Dossier, decode_head
from oku_coordinator.telemetry.lines import build_moment_fields
from oku_core.accounting.outcome import OUTCOMES
from oku_core.results import hdr
from oku_core.results.histogram import Latency
from oku_core.results.history import QUANTILES, Moment
from oku_core.results.summary import Summary

CSV_COLUMNS = (
    "at", "seconds", "state", "total", "accounted", "leased", "pending", "done", "requests", *OUTCOMES,
    "bytes_received", "rate_rps", "in_flight", *QUANTILES, "resent_at_most", "workers", "lag_s",
)  # fmt: skip
"""As docs/metrics.md has them; `at` is the Unix time of the end of a moment."""


def mask_head(line: bytes) -> bytes:
    """The first line of a dossier without secrets; nothing after it has any."""
    head = decode_head(line)
    return msgspec.json.encode(msgspec.structs.replace(head, spec=mask_spec(head.spec)))[:-1]


def build_csv(dossier: Dossier) -> str:
    """A line for each moment; what is not known is empty."""
    text = io.StringIO()
    writer = csv.DictWriter(text, CSV_COLUMNS, lineterminator="\n")
    writer.writeheader()
    for moment in dossier.moments:
        writer.writerow(_build_row(moment, dossier.summary.requests))
    return text.getvalue()


def build_hgrm_text(dossier: Dossier) -> str:
    """The latencies of the whole run, in ms."""
    return build_hgrm(_decode(dossier.summary))


def decode_latency(summary: Summary) -> Latency:
    """The latencies of a run with their exact ends, for which the exchange format has no place."""
    latency = _decode(summary)
    figures = summary.latency_ms
    if figures.min is None or figures.max is None:
        return latency
    return msgspec.structs.replace(
        latency, min_us=round(figures.min * 1000), max_us=round(figures.max * 1000)
    )


def _decode(summary: Summary) -> Latency:
    return hdr.decode(base64.b64decode(summary.histogram))


def _build_row(moment: Moment, total: int) -> Mapping[str, Any]:
    return {
        "at": round(moment.at, 3),
        "seconds": round(moment.seconds, 3),
        **build_moment_fields(moment, total),
        "rate_rps": round(moment.rate_rps, 1),
        "in_flight": round(moment.in_flight, 1),
        **{name: getattr(moment, name) for name in QUANTILES},
        "resent_at_most": moment.resent_at_most,
        "workers": moment.workers,
        "lag_s": round(moment.lag_s, 4),
    }
