"""Describes parts of a spec to people, without secrets: its load, its targets, the request of an index."""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from fractions import Fraction
from typing import NamedTuple

import msgspec

from oku_core.data.escape import AS_TEXT, IN_URL
from oku_core.data.row_reader import RowValues
from oku_core.process.redaction import MASK, redact
from oku_core.schedule.stage import Arrivals, Stage
from oku_core.spec.load import list_stages
from oku_core.spec.request_template import RequestMix, RequestTemplate
from oku_core.spec.spec import OPEN_END, Spec
from oku_core.spec.values.quantity import find_exact_seconds, format_duration
from oku_core.spec.values.template import Template
from oku_core.spec.values.url import Url

MOST_TOLD = 4
"""How many stages are described one by one."""

_PERIODS = ((1, "/s"), (60, "/min"), (3600, "/h"))
_UNITS = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))


def describe_load(spec: Spec) -> str:
    """The load in words: `5,000/s for 10 min, 3,000,000 requests`, `200 in flight for 10 min`.

    Of user code: `200 users, 1,000,000 iterations`.
    """
    return ", ".join(_list_parts(spec))


def describe_shortage(spec: Spec, latency_s: float) -> str:
    """Explain why too few requests in flight are allowed to hold the rate of a spec; empty if they suffice.

    By Little's law (J. D. C. Little: A Proof for the Queuing Formula L = λW, Operations Research 9, 1961), a
    rate times the mean latency is the mean number in flight.

    Args:
        spec: a spec with a rate.
        latency_s: how long a request is in flight, in the mean.
    """
    peak = max(stage.peak for stage in list_stages(spec))
    needed = peak * find_exact_seconds(latency_s)
    if needed <= spec.concurrency:
        return ""
    held = Fraction(spec.concurrency) / find_exact_seconds(latency_s)
    flag = "--users" if spec.runs_user_code else "--concurrency"
    return (
        f"{_describe_concurrency(spec)} can sustain at most {_format_rates(Fraction(math.floor(held)))} at a "
        f"latency of {format_duration(latency_s)}; {_format_rates(peak)} needs {flag} {math.ceil(needed)}"
    )


def _list_parts(spec: Spec) -> Iterator[str]:
    stages = list_stages(msgspec.structs.replace(spec, warm_up_s=None))
    counted = spec.counted if spec.requests != 1 else spec.counted.removesuffix("s")
    requests = f"{spec.requests:,} {counted}"
    if len(stages) > MOST_TOLD:
        yield f"{len(stages)} stages of up to {_format_levels(spec, max(stage.peak for stage in stages))}"
        yield _format_time(sum((stage.duration for stage in stages), Fraction(0)))
    else:
        yield from (_describe_stage(spec, stage) for stage in stages)
    if spec.is_open:
        yield requests
    elif spec.is_timed:
        if not stages and spec.length_s is not None:
            yield f"{_describe_concurrency(spec)} for {_format_time(spec.length_s)}"
        if spec.requests < OPEN_END:
            yield f"at most {requests}"
    else:
        yield _describe_concurrency(spec)
        yield requests
    if spec.max_rate is not None:
        yield f"at most {_format_rates(spec.max_rate.per_second)}"
    if spec.is_open and spec.arrivals is Arrivals.POISSON:
        yield "Poisson arrivals"
    if spec.warm_up_s is not None:
        yield f"including a warm-up of {_format_time(find_exact_seconds(spec.warm_up_s))}"


def _describe_concurrency(spec: Spec) -> str:
    many = "in flight"
    if spec.runs_user_code:
        many = f"user{'s' * (spec.concurrency != 1)}"
    return f"{spec.concurrency:,} {many}"


def _describe_stage(spec: Spec, stage: Stage) -> str:
    time = _format_time(stage.duration)
    if stage.begin == stage.end:
        return f"{_format_levels(spec, stage.end)} for {time}"
    return f"{_format_levels(spec, stage.begin, stage.end)} over {time}"


def _format_levels(spec: Spec, *levels: Fraction) -> str:
    """Write rates, or requests in flight, with one unit: `0 to 5,000/s`, `0 to 200 in flight`."""
    unit = "users" if spec.runs_user_code else "in flight"
    return _format_rates(*levels) if spec.is_open else f"{_join(levels)} {unit}"


def _format_rates(*per_second: Fraction) -> str:
    """Write rates for the shortest time in which all are whole: `5,000/s`, `90/min`, `20/h`."""
    for seconds, unit in _PERIODS:
        counts = [rate * seconds for rate in per_second]
        if all(count.denominator == 1 for count in counts):
            return f"{_join(counts)}{unit}"
    return f"{' to '.join(f'{float(rate):,.4g}' for rate in per_second)}/s"


def _join(counts: Iterable[Fraction]) -> str:
    return " to ".join(f"{int(count):,}" for count in counts)


def _format_time(seconds: Fraction) -> str:
    """Write a time in full: `10 min`, `1 h 30 min`, `1.5 s`, `20 ms`."""
    if seconds < 1:
        return f"{float(seconds * 1000):g} ms"
    if seconds.denominator != 1:
        return f"{float(seconds):g} s"
    left, parts = int(seconds), []
    for length, unit in _UNITS:
        count, left = divmod(left, length)
        parts += [f"{count} {unit}"] if count else []
    return " ".join(parts)


OWN_SERVERS = "delay servers"
LONGEST_URL = 60
"""Characters; a longer URL is cut."""
MOST_NAMED = 3
"""How many targets are named."""


def describe_target(spec: Spec) -> str:
    """The target in words: `http://host/items/{i}`, `item, buy at https://shop.example`, `delay servers`."""
    if spec.scenario is not None:
        name = spec.scenario.path
        return name if spec.base_url is None else f"{name} at {_shorten(spec.base_url)}"
    places = list(dict.fromkeys(_shorten(url) for url in spec.list_places()))
    place = _join_names(places, 1) if places else OWN_SERVERS
    names = [target.name for target in spec.targets]
    return f"{_join_names(names, MOST_NAMED)} at {place}" if names else place


def _join_names(items: list[str], most: int) -> str:
    more = f" and {len(items) - most:,} more" if len(items) > most else ""
    return f"{', '.join(items[:most])}{more}"


def _shorten(url: Url) -> str:
    """Leave out the user and the query of a URL, which may be secret."""
    query = "?…" if url.query else ""
    text = f"{url.scheme}://{url.authority.rpartition('@')[2]}{url.path}"
    most = LONGEST_URL - len(query)
    return f"{text[: most - 1]}…" if len(text) > most else f"{text}{query}"


_PLACEHOLDER = re.compile(r"(\{(?!literal:)[^{}]*\})")


class RequestLine(NamedTuple):
    """A request, as a table shows it; the URL is empty if it goes to Oku's own delay servers.

    An iteration of user code has none: its requests are unknown.
    """

    target: str
    method: str
    url: str

    @property
    def text(self) -> str:
        """Method and URL."""
        return f"{self.method} {self.url}".rstrip()


class RequestLines:
    """Finds the request of each index of a spec.

    Args:
        spec: of the run.
        hides_queries: whether queries are masked, but for their placeholders.
    """

    def __init__(self, spec: Spec, *, hides_queries: bool = False) -> None:
        self._mix = RequestMix(spec) if spec.list_places() and not spec.runs_user_code else None
        self._method = "" if spec.runs_user_code else spec.method
        templates = self._mix.templates if self._mix else ()
        self._urls = [_Url(template, hides_query=hides_queries) for template in templates]

    def find_target(self, index: int) -> str:
        """The name of the target that an index asks."""
        return self._mix.find(index).name if self._mix else ""

    def build(self, index: int, row: Mapping[str, str] | None = None) -> RequestLine:
        """The request of an index; its user and password are masked.

        Args:
            index: of the request.
            row: its row; placeholders of columns stay as they are without it.
        """
        if self._mix is None:
            return RequestLine("", self._method, "")
        place = self._mix.turns[index % len(self._mix.turns)]
        template = self._mix.templates[place]
        return RequestLine(template.name, template.method, self._urls[place].build(index, row))


class _Url:
    """The URLs of a template, with values written as they are sent."""

    def __init__(self, template: RequestTemplate, *, hides_query: bool) -> None:
        masked = redact(template.url, queries=False)
        if hides_query:
            masked = _hide_query(masked)
        filled = Template.parse(masked, template.columns, IN_URL)
        self._row = RowValues(list(dict.fromkeys(filled.values)))
        self._build_filled: Callable[[int], str] = filled.bind(self._row)
        self._build_open: Callable[[int], str] = Template.parse(masked, (), AS_TEXT).bind()

    def build(self, index: int, row: Mapping[str, str] | None) -> str:
        """The URL of an index, filled in as far as it can be."""
        if row is None:
            return self._build_open(index)
        self._row.row = row
        return self._build_filled(index)


def _hide_query(url: str) -> str:
    """Mask each value in the query of a URL, but for its placeholders."""
    place, mark, query = url.partition("?")
    return f"{place}{mark}{'&'.join(map(_hide_value, query.split('&')))}"


def _hide_value(pair: str) -> str:
    name, sign, value = pair.partition("=")
    parts = _PLACEHOLDER.split(value if sign else pair)
    return (name + sign if sign else "") + "".join(
        part if at % 2 else part and MASK for at, part in enumerate(parts)
    )
