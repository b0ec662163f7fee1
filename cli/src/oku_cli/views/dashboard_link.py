"""Links from a run to its dashboard in a Grafana that shows the Loki in which its lines are."""

from datetime import datetime
from urllib.parse import urlencode

from oku_core.accounting.run_state import REST_STATES
from oku_core.spec.values.url import parse_urls
from oku_core.summary.summary import Summary
from oku_core.summary.validity import Flag

_DASHBOARD = "oku-run"
"""The uid of Oku / Run, which never changes."""
_MARGIN_S = 10.0
"""Shown before and after a run: the last lines of one have the time of its end, or come soon after it. A run
of a minute fills three quarters of each chart."""


def parse_grafana_url(text: str) -> str:
    """The address of a Grafana, which may be served below a path, without a slash at its end.

    Raises:
        ValueError: it is not an address to which the path of a dashboard can be added, or holds a secret.
    """
    [url] = parse_urls(text)
    if "@" in url.authority:
        raise ValueError("the URL has a user, who would be shown with each link; Grafana asks who it is")
    if url.query or "?" in url or "{" in url:
        raise ValueError(f"{url} has a query or a placeholder; give the address of Grafana alone")
    return url.rstrip("/")


def build_live_link(grafana: str, run: str, now: float) -> str:
    """Build the URL of the dashboard of a run that begins now, which goes on with it."""
    return _build_link(grafana, run, now - _MARGIN_S, None)


def build_summary_link(grafana: str, summary: Summary, now: float) -> str:
    """Build the URL of the dashboard of a run, with some time before and after it."""
    ended = _find_end(summary, now)
    started = ended if summary.started_at is None else _parse_time(summary.started_at)
    until = ended + _MARGIN_S if summary.state in REST_STATES else None
    return _build_link(grafana, summary.run, started - _MARGIN_S, until)


def _find_end(summary: Summary, now: float) -> float:
    """The Unix time at which a run ended, or was paused; now if it goes on or that is not known."""
    if summary.ended_at is not None:
        return _parse_time(summary.ended_at)
    has_pauses = any(validity.flag is Flag.INTERRUPTED for validity in summary.validity)
    if summary.state in REST_STATES and summary.started_at is not None and not has_pauses:
        return _parse_time(summary.started_at) + summary.active_s
    return now


def _build_link(grafana: str, run: str, since: float, until: float | None) -> str:
    query = {"var-run": run, "from": _format_ms(since), "to": "now" if until is None else _format_ms(until)}
    return f"{grafana}/d/{_DASHBOARD}?{urlencode(query)}"


def _parse_time(iso: str) -> float:
    return datetime.fromisoformat(iso).timestamp()


def _format_ms(unix_s: float) -> str:
    return str(round(unix_s * 1000))
