"""Thresholds as users write them: conditions on a run, such as `p99 < 300ms` or `ok >= 99.9%`.

    threshold = figure ["of" TARGET] comparison limit {"during" PHASE | "over" DURATION} [": abort"]
    figure    = [time] ("p" NUMBER | "mean" | "max") | OUTCOME {"+" OUTCOME} | "rate"
    time      = "latency" | "response_time" | "lateness"
    limit     = DURATION for times, PERCENT or COUNT for outcomes, RATE or NUMBER "of plan" for a rate

Names with blanks or one of `<>+:` stand in double quotes. `docs/thresholds.md` explains each one.
"""

from collections.abc import Mapping
from enum import StrEnum
from fractions import Fraction
from functools import partial
from typing import Self

from oku_core.accounting.measured_time import LIVE_TIMES, Time
from oku_core.accounting.outcome import Outcome
from oku_core.errors import format_value
from oku_core.spec.values.quantity import Rate, parse_exact_duration, parse_number
from oku_core.spec.values.scalar import list_given, parse_text
from oku_core.spec.values.threshold_reader import ComparisonOperator, ThresholdReader

MOST_THRESHOLDS = 50
"""How many thresholds a run may have; each is looked at once a second."""
ABORT = "abort"
"""The word for ending a run once the threshold is lost."""
FAILED = "failed"
"""Stands for all outcomes of requests that were sent and are not ok."""
NEVER_ENDED = frozenset({Outcome.NOT_SENT, Outcome.LOST})
"""Outcomes without a result: these requests were not sent, or their worker died with them."""

_LONGEST_LIMIT_S, _LONGEST_STRETCH_S = 3600, 3600
_MOST_REQUESTS, _MOST_OF_PLAN = 10**15, 1000
_WHOLE = 100


class FigureKind(StrEnum):
    """What a threshold compares with its limit."""

    QUANTILE = "quantile"
    MEAN = "mean"
    OUTCOMES = "outcomes"
    RATE = "rate"


class FigureUnit(StrEnum):
    """What the value and the limit of a threshold are given in."""

    MS = "ms"
    """Milliseconds."""
    SHARE = "share"
    """A share of the requests, from 0 to 1."""
    REQUESTS = "requests"
    """A number of requests."""
    PER_SECOND = "per_second"
    """Requests per second."""
    OF_PLAN = "of_plan"
    """A share of the requests that were planned, 1 being all."""


_NAMES: Mapping[str, frozenset[Outcome]] = {
    **{outcome.value: frozenset({outcome}) for outcome in Outcome},
    FAILED: frozenset(Outcome) - NEVER_ENDED - {Outcome.OK},
}
_FIGURES = f"a figure: p99, mean, max, rate, or outcomes ({', '.join(_NAMES)})"
_ONLY_AT_THE_END = frozenset({FigureKind.MEAN, FigureKind.RATE})
_DURATIONS = "a duration with its unit, such as 300ms or 2s"


class Threshold(str):
    """A threshold; as a string, it is the text that the user wrote.

    Attributes:
        kind: the figure that is compared.
        time: which time, of a quantile or a mean.
        quantile: which quantile, from above 0 to 1, which is the maximum.
        outcomes: which outcomes are counted, where these are compared.
        target: the name of the requests that it is about; None for all.
        phase: the phase that it is about; None for all but the warm-up.
        comparison: how the value must compare with the limit.
        limit: in `unit`, exactly.
        unit: of value and limit.
        over_s: over how many seconds in a row it is looked at; None for the whole of the run or its phase.
        aborts: whether the run ends once it is lost.
    """

    __slots__ = (
        "aborts", "comparison", "kind", "limit", "outcomes", "over_s", "phase", "quantile", "target", "time",
        "unit",
    )  # fmt: skip
    kind: FigureKind
    time: Time
    quantile: Fraction
    outcomes: frozenset[Outcome]
    target: str | None
    phase: str | None
    comparison: ComparisonOperator
    limit: Fraction
    unit: FigureUnit
    over_s: Fraction | None
    aborts: bool

    def __new__(cls, text: str) -> Self:
        """Parse the form above; raise `ValueError`, which names the place, for anything else."""
        threshold, reader = super().__new__(cls, text), ThresholdReader(text)
        threshold._read_figure(reader)
        threshold.target = reader.read_name("a target") if reader.skip("of") else None
        threshold.comparison = reader.read_comparison()
        threshold._read_limit(reader)
        threshold._read_rest(reader)
        return threshold

    def _read_figure(self, reader: ThresholdReader) -> None:
        self.time, self.quantile, self.outcomes = Time.LATENCY, Fraction(1), frozenset()
        word = reader.read_word(_FIGURES)
        if word in LIVE_TIMES:
            self.time = Time(word)
            word = reader.read_word("a figure of it: p99, mean or max")
            self._read_time_figure(word, reader)
        elif word == "rate":
            self.kind = FigureKind.RATE
        elif word in _NAMES:
            self.kind, self.outcomes = FigureKind.OUTCOMES, _NAMES[word]
            while reader.skip("+"):
                word = reader.read_word(wanted := f"one of {', '.join(_NAMES)}")
                self.outcomes |= _NAMES[word] if word in _NAMES else reader.refuse(wanted)
        else:
            self._read_time_figure(word, reader)

    def _read_time_figure(self, word: str, reader: ThresholdReader) -> None:
        self.kind = FigureKind.MEAN if word == "mean" else FigureKind.QUANTILE
        if word in ("mean", "max"):
            return
        if not (word.startswith("p") and word[1:2].isdigit()):
            reader.refuse(_FIGURES)
        percent = reader.parse(lambda: parse_number(word[1:], "a percentile"), "a percentile such as p99")
        if not 0 < percent <= _WHOLE:
            reader.refuse("a percentile above p0 and up to p100")
        self.quantile = percent / _WHOLE

    def _read_limit(self, reader: ThresholdReader) -> None:
        if self.kind is FigureKind.OUTCOMES:
            self._read_count(reader)
        elif self.kind is FigureKind.RATE:
            self._read_rate(reader)
        else:
            self.unit = FigureUnit.MS
            if not self.comparison.is_upper:
                reader.refuse("< or <=: a time can only be limited from above")
            text = reader.read_word(_DURATIONS)
            seconds = reader.parse(lambda: parse_exact_duration(text), _DURATIONS)
            if not text[-1].isalpha():
                reader.refuse(_DURATIONS)
            if not 0 < seconds <= _LONGEST_LIMIT_S:
                reader.refuse("more than 0ms and at most 1h")
            self.limit = seconds * 1000

    def _read_count(self, reader: ThresholdReader) -> None:
        wanted = "a share such as 99.9% or a number of requests"
        text = reader.read_word(wanted)
        self.unit = FigureUnit.SHARE if text.endswith("%") else FigureUnit.REQUESTS
        number = reader.parse(lambda: parse_number(text.removesuffix("%"), wanted), wanted)
        self.limit = number / _WHOLE if self.unit is FigureUnit.SHARE else number
        most = 1 if self.unit is FigureUnit.SHARE else None
        if not 0 <= self.limit <= (most or _MOST_REQUESTS):
            reader.refuse("between 0% and 100%" if most else "between 0 and 1e15")
        if self.unit is FigureUnit.REQUESTS and number.denominator != 1:
            # A forgotten % behind 99.9 must not let a run pass with a hundred requests.
            reader.refuse(f"a whole number of requests; a share is {text}%")
        can_hold = not (self.limit == most and self.comparison is ComparisonOperator.ABOVE)
        if not can_hold or (self.limit == 0 and self.comparison is ComparisonOperator.BELOW):
            reader.refuse(f"a limit that can hold with {self.comparison}")

    def _read_rate(self, reader: ThresholdReader) -> None:
        wanted = "a rate such as 100/s, or a share of the plan such as 0.99 of plan"
        text = reader.read_word(wanted)
        if "/" in text:
            self.unit = FigureUnit.PER_SECOND
            self.limit = reader.parse(lambda: Rate(text).per_second, wanted)
            return
        self.unit, is_percent = FigureUnit.OF_PLAN, text.endswith("%")
        number = reader.parse(lambda: parse_number(text.removesuffix("%"), wanted), wanted)
        self.limit = number / _WHOLE if is_percent else number
        if not 0 <= self.limit <= _MOST_OF_PLAN:
            reader.refuse(f"between 0 and {_MOST_OF_PLAN} of plan")
        if not (reader.skip("of") and reader.skip("plan")):
            reader.refuse(wanted)

    def _read_rest(self, reader: ThresholdReader) -> None:
        self.phase, self.over_s, self.aborts = None, None, False
        while not reader.is_at_end:
            if self.phase is None and reader.skip("during"):
                self.phase = reader.read_name("a phase")
            elif self.over_s is None and reader.skip("over"):
                text = reader.read_word(_DURATIONS)
                self.over_s = reader.parse(partial(parse_exact_duration, text), _DURATIONS)
                if not 1 <= self.over_s <= _LONGEST_STRETCH_S:
                    reader.refuse("between 1s and 1h")
            elif reader.skip(":"):
                self._read_action(reader)
            elif reader.skip("of"):
                reader.refuse("allowed here: of TARGET stands before the comparison")
            else:
                reader.read_word("")
                reader.refuse("during PHASE, over DURATION or : abort")
        if self.over_s is not None and self.target is not None:
            raise ValueError(f"{format_value(str(self))}: `over` cannot be combined with `of {self.target}`")
        if self.unit is FigureUnit.OF_PLAN and self.target is not None:
            raise ValueError(f"{format_value(str(self))}: `of plan` is of all requests, not of {self.target}")

    def _read_action(self, reader: ThresholdReader) -> None:
        if reader.read_word(ABORT) != ABORT:
            reader.refuse(ABORT)
        if self.over_s is None and self.kind in _ONLY_AT_THE_END:
            reader.refuse(f"possible: a {self.kind} is known at the end only; say over which time")
        self.aborts = True
        reader.expect_end()


def parse_thresholds(value: object) -> tuple[Threshold, ...]:
    """Parse one threshold or a list of them; YAML reads `p99 < 1s: abort` as a mapping, which is accepted."""
    items = list_given(value, "threshold")
    if len(items) > MOST_THRESHOLDS:
        raise ValueError(f"{len(items)} thresholds are more than {MOST_THRESHOLDS}")
    thresholds = tuple(Threshold(_join(item)) for item in items)
    for number, threshold in enumerate(thresholds):
        if threshold in thresholds[:number]:
            raise ValueError(f"{format_value(str(threshold))} is given twice")
    return thresholds


def _join(item: object) -> str:
    if isinstance(item, Mapping) and len(item) == 1:
        expression, action = next(iter(item.items()))
        return f"{parse_text(expression).strip()}: {parse_text(action).strip()}"
    return parse_text(item).strip()
