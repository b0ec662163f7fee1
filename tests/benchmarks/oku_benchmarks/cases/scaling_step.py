"""One step of the benchmark `scaling`: what a number of workers costs the coordinator and the broker."""

import msgspec


class Delay(msgspec.Struct, frozen=True, kw_only=True):
    """Milliseconds, over all that happened in the window."""

    p50_ms: float
    p99_ms: float


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One number of workers."""

    workers: int
    lease_s: float
    window_s: float
    dealt_s: float
    """From the submission of the run until every worker had a lease."""
    checkpoint_s: float
    """How often the coordinator wanted to hear of each lease."""
    checkpoints_per_s: float
    progress_per_s: float
    """Events that the coordinator took."""
    progress_sent_per_s: float
    coordinator_cpu: float
    """Share of one core."""
    coordinator_rss_mb: float
    """At the end of the window."""
    coordinator_peak_mb: float
    broker_cpu: float
    broker_peak_mb: float
    workers_cpu: float
    confirm: Delay
    """From the sending of a checkpoint until the worker has its confirmation."""
    waited_share: float
    """Of the workers' time, in which they had nothing that they might take."""
