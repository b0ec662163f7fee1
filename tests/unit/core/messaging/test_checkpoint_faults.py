import math
from collections import Counter
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kit.checkpoints import change_checkpoint
from tests.kit.histograms import make_histogram
from tests.kit.outcomes import make_counts, make_reasons

from oku_core.accounting.histogram import (
    HIGHEST_US,
    Histogram,
    HistogramSnapshot,
    bucket_bounds_us,
    bucket_index,
)
from oku_core.accounting.measured_time import Time
from oku_core.accounting.outcome import (
    LONGEST_REASON,
    NOT_DEALT,
    OUTCOMES,
    Outcome,
    ReasonCount,
    build_no_causes,
    build_no_counts,
)
from oku_core.messaging.checkpoint import (
    LONGEST_TRACEBACK,
    MOST_INNER_PARTS,
    MOST_REASON_RANGES,
    MOST_TRACEBACKS,
    Checkpoint,
    CheckpointBatch,
    LeaseFigures,
    Part,
)
from oku_core.messaging.checkpoint_faults import find_fault

TOLD = [outcome for outcome in OUTCOMES if outcome != Outcome.LOST]
"""What a worker may tell of."""
ANSWERED = {Outcome.OK, Outcome.UNEXPECTED_STATUS, Outcome.FAILED_CHECK}
LENGTH = 30
latencies = st.integers(0, 5000) | st.integers(0, HIGHEST_US)


@st.composite
def true_parts(draw: st.DrawFn, name: str = "") -> Part:
    """Draw what came of some requests, request by request."""
    times = {time: Histogram() for time in Time}
    outcomes = dict.fromkeys(OUTCOMES, 0)
    statuses: Counter[str] = Counter()
    per_second: dict[int, list[int]] = {}
    is_open = draw(st.booleans())
    not_sent = build_no_causes()
    for _ in range(draw(st.integers(0, 12))):
        outcome = draw(st.sampled_from(TOLD))
        outcomes[outcome] += 1
        counts = per_second.setdefault(draw(st.integers(1_700_000_000, 1_700_000_003)), [0] * len(OUTCOMES))
        counts[OUTCOMES.index(outcome)] += 1
        if outcome in ANSWERED:
            statuses[draw(st.sampled_from(["200", "404", "503", "999", "0"]))] += 1
            times[Time.LATENCY].record(latency_us := draw(latencies))
            if draw(st.booleans()):
                times[Time.SPLIT_LATENCY].record(latency_us)
                times[Time.SPLIT_FIRST_BYTE].record(first_byte_us := draw(st.integers(0, latency_us)))
                times[Time.TRANSFER].record(latency_us - first_byte_us)
            if is_open:
                times[Time.RESPONSE_TIME].record(draw(latencies))
        if draw(st.booleans()):
            times[Time.CONNECT].record(draw(latencies))
            if draw(st.booleans()):
                times[Time.TLS].record(draw(latencies))
        if outcome == Outcome.NOT_SENT:
            not_sent[draw(st.integers(0, NOT_DEALT - 1))] += 1
        elif is_open:
            times[Time.LATENESS].record(draw(latencies))
    return Part(
        name=name,
        reasons=make_reasons(list(outcomes.values())),
        outcomes=list(outcomes.values()),
        not_sent=not_sent,
        statuses=dict(statuses),
        bytes_received=draw(st.integers(0, 10**12)),
        times={time: histogram.build_latency() for time, histogram in times.items() if histogram.total},
        per_second=per_second,
        sent_per_second=draw(st.dictionaries(st.integers(0, 2**53 - 1), st.integers(0, 100), max_size=3)),
    )


@st.composite
def true_checkpoints(draw: st.DrawFn) -> Checkpoint:
    """Draw the checkpoint of a worker that has taken a prefix of a lease of `LENGTH` positions."""
    end = draw(st.integers(0, LENGTH))
    done = draw(st.integers(0, end))
    in_flight = sorted(draw(st.sets(st.sampled_from(range(done)))) if done else [])
    return Checkpoint(
        lease="l1",
        sequence=draw(st.integers(1, 10**6)),
        done=done,
        end=end,
        in_flight=in_flight,
        untouched=sorted(draw(st.sets(st.sampled_from(in_flight)))) if in_flight else [],
        is_final=draw(st.booleans()),
        parts=[draw(true_parts(name)) for name in draw(st.sets(st.sampled_from(["", "login", "cart"])))],
        figures=LeaseFigures(
            started_at=1.7e9,
            ended_at=1.7e9 + draw(st.floats(0, 3600)),
            cpu_s=draw(st.floats(0, 3600)),
            peak_rss_mb=draw(st.floats(0, 1e6)),
            max_lag_s=draw(st.floats(0, 60)),
            busy_share=draw(st.floats(0, 1)),
            saturated=draw(st.integers(0, done - len(in_flight))),
            lagged=draw(st.integers(0, done - len(in_flight))),
            clock_step_s=draw(st.floats(0, 1e6)),
            watched_s=draw(st.floats(0, 3600)),
            underfilled_s=draw(st.floats(0, 3600)),
        ),
    )


def build_part(**changes: Any) -> Part:
    """What came of six requests, of which three were answered."""
    latency = make_histogram((1000, 1000, 5000))
    part = Part(
        outcomes=make_counts(2, unexpected_status=1, timeout=3),
        reasons=make_reasons(make_counts(2, unexpected_status=1, timeout=3)),
        statuses={"200": 2, "500": 1},
        times={Time.LATENCY: latency.build_latency()},
        per_second={
            1_700_000_000: make_counts(2),
            1_700_000_001: make_counts(unexpected_status=1, timeout=3),
        },
    )
    return msgspec.structs.replace(part, **changes)


def build_checkpoint(**changes: Any) -> Checkpoint:
    """A checkpoint of seven positions out of ten, one of them in flight."""
    checkpoint = Checkpoint(
        lease="l1", sequence=1, done=7, end=10, in_flight=[5], parts=[build_part()],
        figures=LeaseFigures(started_at=1.7e9, ended_at=1.7e9 + 1),
    )  # fmt: skip
    return change_checkpoint(checkpoint, **changes)


TIMES = build_part().times
ONE = HistogramSnapshot(buckets=[7, 1], sum_us=7, min_us=7, max_us=7)


def is_possible(checkpoint: Checkpoint, length: int) -> bool:
    """Judge a checkpoint in another way: position by position and bucket by bucket, regardless of speed."""
    if checkpoint.done not in range(length + 1):
        return False
    taken, in_flight = set(range(checkpoint.done)), set(checkpoint.in_flight)
    covered = len(taken - in_flight)
    keys = [(part.phase, part.name) for part in checkpoint.parts]
    figures = checkpoint.figures
    return (
        checkpoint.end in range(checkpoint.done, length + 1)
        and checkpoint.sequence in range(1, 2**53)
        and in_flight <= taken
        and sorted(in_flight) == checkpoint.in_flight
        and set(checkpoint.untouched) <= in_flight
        and sorted(set(checkpoint.untouched)) == checkpoint.untouched
        and len(set(keys)) == len(keys)
        and all(map(is_possible_part, checkpoint.parts))
        and is_possible_failed(checkpoint, taken - in_flight)
        and not any(part.failed_reasons for part in checkpoint.parts)  # nothing is listed
        and all(count.last < length for part in checkpoint.parts for count in part.reasons)
        and all(0 <= strained <= covered for strained in (figures.saturated, figures.lagged))
        and all(
            math.isfinite(figure) and 0 <= figure < 2**53
            for figure in msgspec.structs.asdict(figures).values()
        )
    )


def is_possible_part(part: Part) -> bool:
    """Judge a part alone."""
    totals = [
        sum(each.buckets[1::2])
        for each in (part.histogram(Time.RESPONSE_TIME), part.histogram(Time.LATENESS))
    ]
    answered = part.outcomes[0] + part.outcomes[1] + part.outcomes[8]
    accounts = [part.outcomes, *part.per_second.values()]
    return (
        all(len(counts) == 10 and all(count >= 0 for count in counts) for counts in accounts)
        and len(part.not_sent) == 3
        and all(count >= 0 for count in part.not_sent)
        and sum(part.not_sent) == part.outcomes[6]
        and (part.not_sent[2], part.outcomes[7]) == (0, 0)
        and all(second in range(2**53) for second in [*part.per_second, *part.sent_per_second])
        and all(sent in range(2**53) for sent in part.sent_per_second.values())
        and all(status in {str(code) for code in range(1000)} for status in part.statuses)
        and all(count > 0 for count in part.statuses.values())
        and sum(part.statuses.values()) <= answered == sum(part.histogram(Time.LATENCY).buckets[1::2])
        and part.bytes_received in range(2**53)
        and all(
            map(
                is_possible_histogram,
                (
                    part.histogram(Time.LATENCY),
                    part.histogram(Time.RESPONSE_TIME),
                    part.histogram(Time.LATENESS),
                ),
            )
        )
        and totals in ([0, 0], [answered, sum(part.outcomes[:6]) + sum(part.outcomes[8:])])
        and is_possible_catalogue(part)
        and is_possible_timing(part)
    )


def is_possible_timing(part: Part) -> bool:
    """Judge how the time of requests is split."""
    split, first_byte, transfer = (
        part.histogram(Time.SPLIT_LATENCY),
        part.histogram(Time.SPLIT_FIRST_BYTE),
        part.histogram(Time.TRANSFER),
    )
    among = dict(
        zip(
            part.histogram(Time.LATENCY).buckets[0::2],
            part.histogram(Time.LATENCY).buckets[1::2],
            strict=True,
        )
    )
    counts = [
        sum(each.buckets[1::2])
        for each in (split, first_byte, transfer, part.histogram(Time.CONNECT), part.histogram(Time.TLS))
    ]
    return (
        all(
            map(
                is_possible_histogram,
                (split, first_byte, transfer, part.histogram(Time.CONNECT), part.histogram(Time.TLS)),
            )
        )
        and counts[0] == counts[1] == counts[2]
        and counts[3] >= counts[4]
        and split.sum_us == first_byte.sum_us + transfer.sum_us <= part.histogram(Time.LATENCY).sum_us
        and all(count <= among.get(index, 0) for index, count in split.filled())
        and (
            not counts[0]
            or part.histogram(Time.LATENCY).min_us
            <= split.min_us
            <= split.max_us
            <= part.histogram(Time.LATENCY).max_us
        )
    )


def is_possible_catalogue(part: Part) -> bool:
    """Judge the reasons of a part alone."""
    sums = Counter[int]()
    for count in part.reasons:
        sums[count.outcome] += count.requests
    keys = {(count.outcome, count.reason) for count in part.reasons}
    return (
        all(count.requests > 0 and 0 <= count.first <= count.last for count in part.reasons)
        and all(count.reason.isprintable() and 0 < len(count.reason) <= 120 for count in part.reasons)
        and len(keys) == len(part.reasons)
        and set(sums) <= set(range(1, 10))
        and [sums[place] for place in range(1, 10)] == part.outcomes[1:]
    )


def is_possible_failed(checkpoint: Checkpoint, covered: set[int]) -> bool:
    """Judge the failed positions of all parts: each is covered, and has failed once."""
    seen: list[int] = []
    for part in checkpoint.parts:
        for outcome, packed in part.failed.items():
            if len(packed) % 2:
                return False
            at, count = -1, 0
            for gap, length in zip(packed[0::2], packed[1::2], strict=True):
                if length <= 0 or gap < (at >= 0) or gap + length > 100:
                    return False
                start = max(at, 0) + gap
                at, count = start + length, count + length
                seen += range(start, at)
            if outcome == Outcome.OK or count > part.outcomes[OUTCOMES.index(outcome)]:
                return False
    return set(seen) <= covered and len(set(seen)) == len(seen)


def is_possible_histogram(latency: HistogramSnapshot) -> bool:
    """Judge a histogram alone."""
    buckets = dict(zip(latency.buckets[0::2], latency.buckets[1::2], strict=False))
    return (
        all(0 <= index <= bucket_index(HIGHEST_US) and count > 0 for index, count in buckets.items())
        and len(latency.buckets) == 2 * len(buckets)
        and list(buckets) == sorted(buckets)
        and is_possible_latency(latency, buckets)
    )


def is_possible_latency(latency: HistogramSnapshot, buckets: dict[int, int]) -> bool:
    """Whether sum, minimum and maximum are possible with these buckets."""
    counts, bounds = list(buckets.values()), [bucket_bounds_us(index) for index in buckets]
    if not counts:
        return (latency.sum_us, latency.min_us, latency.max_us) == (0, 0, 0)
    return (
        bounds[0][0] <= latency.min_us <= bounds[0][1]
        and bounds[-1][0] <= latency.max_us <= bounds[-1][1]
        and latency.min_us <= latency.max_us
        and sum(count * low for count, (low, _) in zip(counts, bounds, strict=True)) <= latency.sum_us
        and latency.sum_us <= sum(count * high for count, (_, high) in zip(counts, bounds, strict=True))
    )


def mutate(data: st.DataObject, value: Any) -> Any:
    """Draw another value of the same type, near the old value or far from it."""
    if isinstance(value, int):
        return data.draw(st.sampled_from([value - 1, value + 1, -value - 1, 0, 2**53 - 1, 2**53, 10**30]))
    if isinstance(value, float):
        return data.draw(st.sampled_from([value + 1, -1e-9, math.nan, math.inf, -math.inf, 2.0**53]))
    if isinstance(value, dict):
        return mutate_counts(data, value)
    if isinstance(value, list):
        return mutate_list(data, value)
    name = data.draw(st.sampled_from(sorted({*value.__struct_fields__} - {"phase", "name"})))
    if name in _MUTATIONS:
        return msgspec.structs.replace(value, **{name: _MUTATIONS[name](data, getattr(value, name))})
    return msgspec.structs.replace(value, **{name: mutate(data, getattr(value, name))})


def mutate_counts(data: st.DataObject, value: dict[Any, Any]) -> dict[Any, Any]:
    """Draw counts by status with one of them changed, removed or added."""
    names = st.sampled_from(["200", "404", "007", "7", "", "ok", "1000", "-1", "٢٠٠", "2xx", *value])
    changed = dict(value)
    changed.pop(data.draw(names), None)
    return changed | {data.draw(names): data.draw(st.integers(-1, 30))}


def mutate_seconds(data: st.DataObject, value: dict[int, list[int]]) -> dict[int, list[int]]:
    """Draw counts by second with those of one second changed or added."""
    second = data.draw(st.sampled_from([-1, 2**53, 7, *value]))
    return value | {second: data.draw(st.sampled_from([build_no_counts(), [1] * 5, make_counts(timeout=-1)]))}


def mutate_sent(data: st.DataObject, value: dict[int, int]) -> dict[int, int]:
    """Draw how many were sent, with one second changed or added."""
    return value | {data.draw(st.sampled_from([-1, 2**53, 7])): data.draw(st.sampled_from([-1, 0, 9, 2**53]))}


def mutate_reasons(data: st.DataObject, value: list[ReasonCount]) -> list[ReasonCount]:
    """Draw reasons with one of them left out, doubled or changed."""
    if not value:
        return [ReasonCount(data.draw(st.integers(0, 10)), "refused", 1, 0, 0)]
    place = data.draw(st.integers(0, len(value) - 1))
    here = value[place]
    changes: list[dict[str, Any]] = [
        {"outcome": 0}, {"outcome": 10}, {"reason": ""}, {"reason": "a\n"}, {"reason": "a" * 121},
        {"requests": here.requests + 1}, {"requests": 0}, {"first": -1}, {"last": 5}, {"first": 6},
        {"last": 10**6},
    ]  # fmt: skip
    changed = [msgspec.structs.replace(here, **data.draw(st.sampled_from(changes)))]
    return [*value[:place], *data.draw(st.sampled_from([[], [here, here], changed])), *value[place + 1 :]]


def mutate_failed(data: st.DataObject, value: dict[Outcome, list[int]]) -> dict[Outcome, list[int]]:
    """Draw failed positions with those of one outcome changed or added."""
    packed = st.sampled_from([[0, 1], [0, 1, 0, 1], [1, 1, 1, 1], [5], [-1, 2], [0, 0], [29, 1], [3, 90]])
    return value | {data.draw(st.sampled_from(OUTCOMES)): data.draw(packed)}


def mutate_times(data: st.DataObject, value: dict[Time, HistogramSnapshot]) -> dict[Time, HistogramSnapshot]:
    """Draw distributions with one of them changed, left out or added."""
    time = data.draw(st.sampled_from(Time))
    if time in value and data.draw(st.booleans()):
        return {other: histogram for other, histogram in value.items() if other != time}
    return value | {time: mutate(data, value.get(time, ONE))}


_MUTATIONS: dict[str, Callable[[st.DataObject, Any], Any]] = {
    "per_second": mutate_seconds,
    "sent_per_second": mutate_sent,
    "reasons": mutate_reasons,
    "failed": mutate_failed,
    "failed_reasons": lambda _, value: value | {Outcome.TIMEOUT: [1]},
    "times": mutate_times,
}


def mutate_list(data: st.DataObject, value: list[Any]) -> list[Any]:
    """Draw the list with one part mutated, or one number changed, removed, doubled, moved or added."""
    if value and isinstance(value[0], Part):
        place = data.draw(st.integers(0, len(value) - 1))
        return [*value[:place], mutate(data, value[place]), *value[place + 1 :]]
    place = data.draw(st.integers(0, max(0, len(value) - 1)))
    here = value[place : place + 1]
    other = data.draw(
        st.sampled_from([[], here * 2, [n + 1 for n in here], [n - 1 for n in here], [0], [10**30]])
    )
    changed = [*value[:place], *other, *value[place + 1 :]]
    return changed[::-1] if data.draw(st.booleans()) else changed


@given(true_checkpoints())
def test_a_true_checkpoint_passes(checkpoint: Checkpoint) -> None:
    """Whatever a worker has sent, and wherever it stands, its true checkpoint is accepted."""
    assert find_fault(checkpoint, LENGTH) is None
    # A checkpoint covers the positions that were taken and ended. Those in flight are not covered.
    assert checkpoint.covered == len(set(range(checkpoint.done)) - set(checkpoint.in_flight))


@settings(max_examples=3 * settings().max_examples)
@given(data=st.data(), checkpoint=true_checkpoints())
def test_a_checkpoint_with_one_field_changed_passes_only_if_it_may_be_true(
    data: st.DataObject, checkpoint: Checkpoint
) -> None:
    """Every changed number, list, status or bucket that contradicts the rest is found, and no other."""
    fields = [
        "sequence",
        "done",
        "end",
        "in_flight",
        "untouched",
        *(["parts"] if checkpoint.parts else []),
        *LeaseFigures.__struct_fields__,
    ]
    field = data.draw(st.sampled_from(fields))
    holder = checkpoint if hasattr(checkpoint, field) else checkpoint.figures
    changed = change_checkpoint(checkpoint, **{field: mutate(data, getattr(holder, field))})
    assert (find_fault(changed, LENGTH) is None) == is_possible(changed, LENGTH)


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"done": -1}, "it is done to -1 of 10, but the lease has 10 positions"),
        ({"done": 11}, "it is done to 11 of 10, but the lease has 10 positions"),
        ({"end": 11}, "it is done to 7 of 11, but the lease has 10 positions"),
        ({"end": 6}, "it is done to 7 of 6, but the lease has 10 positions"),
        ({"sequence": 0}, "its sequence number is 0"),
        ({"sequence": 2**53}, f"its sequence number is {2**53}"),
        ({"in_flight": [-1]}, "the positions in flight do not rise within what is done"),
        ({"in_flight": [7]}, "the positions in flight do not rise within what is done"),
        ({"in_flight": [5, 5]}, "the positions in flight do not rise within what is done"),
        ({"in_flight": [5, 4]}, "the positions in flight do not rise within what is done"),
        ({"parts": [build_part(), build_part()]}, "two parts have the same phase and name"),
        ({"started_at": math.nan}, "started_at is nan"),
        ({"ended_at": math.inf}, "ended_at is inf"),
        ({"cpu_s": -0.1}, "cpu_s is -0.1"),
        ({"peak_rss_mb": math.nan}, "peak_rss_mb is nan"),
        ({"max_lag_s": -math.inf}, "max_lag_s is -inf"),
        ({"busy_share": -1.0}, "busy_share is -1.0"),
        ({"watched_s": -1.0}, "watched_s is -1.0"),
        ({"saturated": 7}, "7 requests are saturated, but 6 are covered"),
        ({"lagged": -1}, "-1 requests are lagged, but 6 are covered"),
        (
            {"parts": [build_part(reasons=[ReasonCount(1, "a", 1, 0, 10), ReasonCount(2, "b", 3, 0, 9)])]},
            "a reason names position 10, but the lease has 10",
        ),
    ],
)
def test_every_fault_is_named(changes: dict[str, Any], fault: str) -> None:
    """The log says what was wrong with a checkpoint."""
    assert find_fault(build_checkpoint(), 10) is None
    assert find_fault(build_checkpoint(**changes), 10) == fault


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"name": "x" * 201}, "a phase or name is not one line of up to 200 printable characters"),
        ({"phase": "two\nlines"}, "a phase or name is not one line of up to 200 printable characters"),
        ({"outcomes": []}, "the outcomes are not a count for each"),
        ({"outcomes": [2, 1, 3, 0, 0]}, "the outcomes are not a count for each"),
        ({"outcomes": [2, 1, 4, -1, 0, 0, 0, 0]}, "the outcomes are not a count for each"),
        ({"per_second": {1: [1]}}, "the outcomes of a second are not the counts of each"),
        ({"not_sent": [0, 0]}, "the causes for not sending are not a count for each"),
        ({"not_sent": [1, -1, 0]}, "the causes for not sending are not a count for each"),
        ({"not_sent": [0, 1, 0]}, "0 are not sent, but the causes sum to 1"),
        (
            {"outcomes": make_counts(not_sent=1), "not_sent": [0, 0, 1]},
            "only the coordinator knows what is lost, and what no worker had",
        ),
        (
            {"outcomes": make_counts(lost=1)},
            "only the coordinator knows what is lost, and what no worker had",
        ),
        ({"sent_per_second": {2**53: 1}}, "a second is out of range"),
        ({"sent_per_second": {1: -1}}, "the requests sent in a second are not a count"),
        ({"times": TIMES | {Time.RESPONSE_TIME: ONE}}, "1 have a response time, but 3 must have one"),
        ({"times": TIMES | {Time.LATENESS: ONE}}, "0 have a response time, but 3 must have one"),
        (
            {"times": TIMES | {Time.RESPONSE_TIME: TIMES[Time.LATENCY], Time.LATENESS: ONE}},
            "1 have a lateness, but 6 must have one",
        ),
        *(
            ({"times": TIMES | {time: HistogramSnapshot(buckets=[5])}}, "buckets do not come in pairs")
            for time in Time
        ),
        ({"per_second": {-1: build_no_counts()}}, "a second is out of range"),
        ({"statuses": {"200": 3, "500": 1}}, "there are more statuses than the 3 answered"),
        (
            {"outcomes": make_counts(2, timeout=4), "statuses": {"200": 3}},
            "there are more statuses than the 2 answered",
        ),
        ({"statuses": {"200": 3, "500": 0}}, "0 responses have the status '500'"),
        ({"statuses": {"200": 4, "500": -1}}, "-1 responses have the status '500'"),
        ({"statuses": {"200": 2, "2xx": 1}}, "1 responses have the status '2xx'"),
        ({"statuses": {"200": 2, "1000": 1}}, "1 responses have the status '1000'"),
        ({"statuses": {"200": 2, "٥٠٠": 1}}, "1 responses have the status '٥٠٠'"),  # noqa: RUF001  # digits, but not a status
        ({"times": {}}, "0 have a latency, but 3 must have one"),
        ({"bytes_received": -1}, "bytes_received is -1"),
        ({"bytes_received": 10**30}, f"bytes_received is {10**30}"),
    ],
)
def test_every_fault_of_a_part_is_named(changes: dict[str, Any], fault: str) -> None:
    """The log says what was wrong with it."""
    assert find_fault(build_checkpoint(parts=[build_part(**changes)]), 10) == fault


def test_checkpoints_do_not_share_their_defaults() -> None:
    """Each part and each checkpoint has its own empty defaults."""
    first, second = (Checkpoint(lease="l", sequence=1, done=0, end=0, parts=[Part()]) for _ in range(2))
    first.parts[0].outcomes[0] += 1
    first.parts[0].per_second[1] = build_no_counts()
    first.in_flight.append(1)
    assert second == Checkpoint(lease="l", sequence=1, done=0, end=0, parts=[Part()])
    assert find_fault(second, 0) is None
    # A checkpoint has no figures by default. A field that a worker leaves out counts as zero.
    checkpoint = Checkpoint(lease="l", sequence=1, done=0, end=5)
    assert set(msgspec.structs.asdict(checkpoint.figures).values()) == {0}
    assert CheckpointBatch(worker="w", incarnation="i", checkpoints=[checkpoint]).rate_rps == 0


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"refusal": "ca.pem: no such file"}, None),
        ({"refusal": "x" * 1000}, None),
        ({"refusal": "x" * 1001}, "the refusal is not one line of up to 1000 printable characters"),
        ({"refusal": "two\nlines"}, "the refusal is not one line of up to 1000 printable characters"),
        ({"refusal": "no engine", "is_final": False}, "it refuses the lease and is done to 0"),
        ({"refusal": "no engine", "done": 1, "in_flight": [0]}, "it refuses the lease and is done to 1"),
    ],
)
def test_a_refusal_gives_a_reason_and_covers_nothing(changes: dict[str, Any], fault: str | None) -> None:
    """The reason is one printable line, and the checkpoint is final."""
    refusal = Checkpoint(lease="l1", sequence=1, done=0, end=7, is_final=True)
    assert find_fault(change_checkpoint(refusal, **changes), 7) == fault


def test_what_is_untouched_is_among_what_is_in_flight() -> None:
    """All of it may be, or nothing."""
    for untouched in [[5], []]:
        assert find_fault(build_checkpoint(untouched=untouched), 10) is None
    for untouched in [[4], [5, 5], [7], [-1]]:
        # Nothing else is untouched. What has an outcome was sent, and what was not taken is nobody's.
        fault = "what is untouched does not rise, or is not in flight"
        assert find_fault(build_checkpoint(untouched=untouched), 10) == fault


def build_inner(**changes: Any) -> Part:
    """What came of six inner requests, changed as wanted."""
    return msgspec.structs.replace(build_part(), **{"name": "login", "reasons": REASONS, **changes})


REASONS = [ReasonCount(1, "a", 1, 0, 3), ReasonCount(2, "b", 3, 6, 6)]


def test_inner_requests_may_be_more_than_iterations_and_have_fewer_statuses_than_answers() -> None:
    """They sum to nothing, and what is no HTTP has no status."""
    inner = [
        build_inner(statuses={"200": 1}),
        build_inner(statuses={}, phase="warm-up"),
        build_inner(name="b"),
    ]
    assert find_fault(build_checkpoint(inner=inner), 10) is None
    cases: list[tuple[list[Part], str]] = [
        ([build_inner(), build_inner()], "two inner parts have the same phase and name"),
        (
            [Part(name=str(number)) for number in range(MOST_INNER_PARTS + 1)],
            f"{MOST_INNER_PARTS + 1} inner parts are told of, but {MOST_INNER_PARTS} is the most",
        ),
        ([build_inner(name="")], "inner requests: they have no name"),
        ([build_inner(outcomes=[])], "inner requests: the outcomes are not a count for each"),
        (
            [build_inner(name="two\nlines")],
            "inner requests: a phase or name is not one line of up to 200 printable characters",
        ),
        (
            [build_inner(failed={Outcome.TIMEOUT: [0, 1]})],
            "inner requests: they have what only iterations have",
        ),
        ([build_inner(sent_per_second={3: 1})], "inner requests: they have what only iterations have"),
        (
            [build_inner(outcomes=make_counts(not_sent=1), not_sent=[1, 0, 0])],
            "inner requests: they have what only iterations have",
        ),
        (
            [build_inner(outcomes=make_counts(2, unexpected_status=1, timeout=3, lost=1))],
            "inner requests: only the coordinator knows what is lost, and what no worker had",
        ),
        (
            [build_inner(statuses={"200": 4})],
            "inner requests: there are more statuses than the 3 answered",
        ),
        (
            [build_inner(reasons=[ReasonCount(1, "a", 1, 0, 7), ReasonCount(2, "b", 3, 0, 0)])],
            "inner requests: a reason names position 7, but only 7 were taken",
        ),
    ]
    for inner, fault in cases:
        # Every fault of inner requests is named.
        assert find_fault(build_checkpoint(inner=inner), 10) == fault


@pytest.mark.parametrize(
    ("tracebacks", "is_true"),
    [
        ({"ValueError": "x" * LONGEST_TRACEBACK}, True),
        ({"ValueError": "x" * (LONGEST_TRACEBACK + 1)}, False),
        ({"x" * LONGEST_REASON: "x"}, True),
        ({"x" * (LONGEST_REASON + 1): "x"}, False),
        ({str(number): "x" for number in range(MOST_TRACEBACKS)}, True),
        ({str(number): "x" for number in range(MOST_TRACEBACKS + 1)}, False),
    ],
)
def test_tracebacks_are_bounded(tracebacks: dict[str, str], *, is_true: bool) -> None:
    """In number and in length, so that no message of a worker is endless."""
    fault = find_fault(build_checkpoint(tracebacks=tracebacks), 10)
    assert fault == (None if is_true else "there are too many tracebacks, or one is too long")


def test_the_reasons_of_listed_positions_are_those_of_requests() -> None:
    """There is one for each position, of its outcome, and no more of them than requests with that reason."""
    for runs, fault in (
        ([2, -2], None),
        ([0, 2, 0], None),
        ([2, 2, 2], "are not runs"),
        ([2], "1 positions that are timeout have a reason, but others are listed"),
        ([2, -3], "4 positions that are timeout have a reason, but others are listed"),
        ([1, 2, -1], "or there is no such reason"),
        ([3, 2, -1], "or there is no such reason"),
    ):
        part = build_part(failed={Outcome.TIMEOUT: [1, 3]}, failed_reasons={Outcome.TIMEOUT: runs})
        found = find_fault(build_checkpoint(parts=[part]), 10)
        assert (found is None) if fault is None else (fault in (found or "")), (runs, found)
    reasons = [part.reasons[0], *(ReasonCount(2, *each, 0, 9) for each in (("a", 2), ("b", 1)))]
    part = msgspec.structs.replace(part, failed_reasons={Outcome.TIMEOUT: [2, -2]}, reasons=reasons)
    found = find_fault(build_checkpoint(parts=[part]), 10)
    assert found is not None
    assert found.startswith("more positions are timeout for a reason than requests")
    alternating = [1, 2] * (MOST_REASON_RANGES // 2) + [1]
    reasons = [ReasonCount(2, reason, 10**5, 0, 9) for reason in ("a", "b")]
    part = build_part(
        outcomes=make_counts(0, timeout=2 * 10**5), reasons=reasons, statuses={}, times={},
        per_second={3: make_counts(0, timeout=2 * 10**5)},
        failed={Outcome.TIMEOUT: [0, len(alternating)]}, failed_reasons={Outcome.TIMEOUT: alternating},
    )  # fmt: skip
    checkpoint = build_checkpoint(parts=[part], done=10**6, end=10**6, in_flight=[])
    assert (
        find_fault(checkpoint, 10**6)
        == "16385 runs of positions have a reason, but 16384 is the most to keep"
    )
