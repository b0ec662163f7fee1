"""How the time of requests is split: connecting, TLS, the first byte of the answer, and its transfer.

Most answers arrive in one piece: their first byte comes with the last one. So nothing is recorded for them
beside their latency, and three distributions tell of the others, the split answers, alone. From these the
first bytes of all answers follow, for histograms add and subtract exactly.
"""

from collections.abc import Mapping

import msgspec

from oku_core.accounting.histogram import Histogram, HistogramSnapshot, bucket_bounds_us, merge, subtract

TIMINGS = ("connect", "tls", "split_latency", "split_first_byte", "transfer")
"""The names of the distributions in the parts of checkpoints (`Part`) and in accounts."""


def find_timing_fault(timings: Mapping[str, Histogram | HistogramSnapshot], answered: int) -> str | None:
    """Say how distributions contradict each other or the number of answers; None if they do not.

    Args:
        timings: by all of the names in `TIMINGS`.
        answered: how many answers were complete.
    """
    connections, handshakes = timings["connect"].total, timings["tls"].total
    if handshakes > connections:
        return f"{handshakes} connections have agreed on TLS, but {connections} were made"
    latency, first_byte, transfer = (timings[name] for name in TIMINGS[2:])
    if not latency.total == first_byte.total == transfer.total <= answered:
        return (
            f"of {answered} answers, {latency.total} were split, but {first_byte.total} have a first byte"
            f" and {transfer.total} a transfer"
        )
    if latency.sum_us != first_byte.sum_us + transfer.sum_us:
        return (
            f"split answers took {latency.sum_us} µs, but their first bytes {first_byte.sum_us} µs"
            f" and their transfers {transfer.sum_us} µs"
        )
    return None


def build_first_byte(
    latency: HistogramSnapshot, split_latency: HistogramSnapshot, split_first_byte: HistogramSnapshot
) -> HistogramSnapshot:
    """From sending to the first byte, of all answers; count and sum are exact.

    Minimum and maximum are exact if they are those of split answers, and else as exact as a bucket.

    Args:
        latency: of all answers.
        split_latency: of those among them that were split.
        split_first_byte: from sending to the first byte, of the same ones.

    Raises:
        ValueError: the latencies of split answers are not among all.
    """
    if not split_latency.buckets:
        return latency
    rest = subtract(latency, split_latency)
    if rest.buckets:
        rest = msgspec.structs.replace(
            rest,
            min_us=max(rest.min_us, bucket_bounds_us(rest.buckets[0])[0]),
            max_us=min(rest.max_us, bucket_bounds_us(rest.buckets[-2])[1]),
        )
    return merge([rest, split_first_byte])


def build_transfer(answered: int, transfer: HistogramSnapshot) -> HistogramSnapshot:
    """From the first to the last byte, of all answers; it is exact.

    Args:
        answered: how many answers were complete.
        transfer: of those among them that were split; the others took no time for it.
    """
    whole = answered - transfer.total
    return merge([transfer, HistogramSnapshot(buckets=[0, whole])]) if whole else transfer
