import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.kit.runs.specs import specs, user_code_specs

from oku_core.data.data_format import DataFormat
from oku_core.spec.data_file import DataFile
from oku_core.spec.description import (
    LONGEST_URL,
    RequestLines,
    describe_load,
    describe_shortage,
    describe_target,
)
from oku_core.spec.load import list_stages
from oku_core.spec.parser import Source, parse_spec
from oku_core.spec.spec import Engine, Spec
from oku_core.spec.target import Target
from oku_core.spec.values.file_reference import CodeFile
from oku_core.spec.values.url import Url

CODE = {"engine": "python", "scenario": f"a.py@sha256:{'0' * 64}:1:a.py"}


def read(values: dict[str, Any]) -> Spec:
    """Read a spec from its keys."""
    return parse_spec(Source("spec", values))


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"requests": 1000}, "100 in flight, 1,000 requests"),
        (CODE | {"users": 200, "iterations": "1M"}, "200 users, 1,000,000 iterations"),
        (CODE | {"users": 1, "iterations": 1}, "1 user, 1 iteration"),
        (CODE | {"concurrency": 50, "duration": "1m"}, "50 users for 1 min"),
        (CODE | {"rate": "5/s", "duration": "1m"}, "5/s for 1 min, 300 iterations"),
        (CODE | {"stages": ["1m:0..200"]}, "0 to 200 users over 1 min"),
        ({"requests": 1, "max-rate": "90/m"}, "100 in flight, 1 request, at most 90/min"),
        ({"rate": "5000/s", "duration": "10m"}, "5,000/s for 10 min, 3,000,000 requests"),
        ({"rate": "5000/s", "requests": "1M"}, "5,000/s for 3 min 20 s, 1,000,000 requests"),
        ({"rate": "20/h", "duration": "1d"}, "20/h for 1 d, 480 requests"),
        ({"rate": "0.0123/s", "duration": "90s"}, "0.0123/s for 1 min 30 s, 1 request"),
        (
            {"rate": "5/s", "duration": "1.5s", "arrivals": "poisson", "warm-up": "20ms"},
            "5/s for 1.5 s, 7 requests, Poisson arrivals, including a warm-up of 20 ms",
        ),
        ({"duration": "10m", "concurrency": 200}, "200 in flight for 10 min"),
        ({"duration": "1h", "requests": 500}, "100 in flight for 1 h, at most 500 requests"),
        (
            {"stages": ["1m:0..5000/s", "10m:5000/s", "30s:0/s"]},
            "0 to 5,000/s over 1 min, 5,000/s for 10 min, 5,000 to 0/s over 30 s, 3,225,000 requests",
        ),
        (
            {"stages": ["1m:0..200", "150m:200"]},
            "0 to 200 in flight over 1 min, 200 in flight for 2 h 30 min",
        ),
        ({"stages": "1m:0..90/m"}, "0 to 90/min over 1 min, 45 requests"),
        ({"stages": "1m:0.0123..5/s"}, "0.0123 to 5/s over 1 min, 150 requests"),
        (
            {"stages": ["1s:1..2/s"] * 5, "warm-up": "1s"},
            "5 stages of up to 2/s, 5 s, 7 requests, including a warm-up of 1 s",
        ),
    ],
)
def test_a_load_is_told_in_words(values: dict[str, Any], words: str) -> None:
    """It says the rate or what is in flight, for how long, and how many requests, if that is known."""
    assert describe_load(read(values)) == words


@given(specs() | user_code_specs())
def test_every_load_has_words(spec: Spec) -> None:
    """They are one line."""
    assert describe_load(spec)
    assert describe_load(spec).isprintable()


def test_too_few_in_flight_for_a_rate_are_told() -> None:
    """By Little's law, the line says what the window holds, and how large it must be."""
    for values, latency_s, begin, end in [
        ({"concurrency": 100}, 0.02, "", ""),
        (
            {"concurrency": 100},
            0.025,
            "100 in flight can sustain at most 4,000/s at a latency of 25 ms",
            "125",
        ),
        ({}, 2.0, "", ""),
        ({}, 2.5, "10,000 in flight can sustain at most 4,000/s at a latency of 2.5 s", "12500"),
    ]:
        spec = read(values | {"rate": "5000/s", "duration": "1m"})
        words = f"{begin}; 5,000/s needs --concurrency {end}" if end else ""
        assert describe_shortage(spec, latency_s) == words
    # Too few users for a rate are told. The line says how many are needed.
    spec = read(CODE | {"rate": "100/s", "duration": "1m", "users": 20})
    assert describe_shortage(spec, 0.5) == (
        "20 users can sustain at most 40/s at a latency of 500 ms; 100/s needs --users 50"
    )
    assert not describe_shortage(spec, 0.2)


@given(specs(), st.floats(1e-6, 100))
def test_what_is_said_to_be_needed_is_enough(spec: Spec, latency_s: float) -> None:
    """With the concurrency of the line, the line is gone; with one less, it is not."""
    if not spec.is_open or not (words := describe_shortage(spec, latency_s)):
        return
    peak = max(stage.peak for stage in list_stages(spec))
    needed = int(words.rpartition(" ")[2])
    assert math.isclose(needed, math.ceil(float(peak) * latency_s), rel_tol=1e-9, abs_tol=1)


def describe(**values: Any) -> str:
    """The target of a spec in words."""
    return describe_target(parse_spec(Source("spec", values)))


def test_a_target_is_its_url_or_its_names() -> None:
    """Without one it is Oku's own delay servers; of several, the first is named."""
    assert describe() == "delay servers"
    assert describe(url="http://h:8080/items/{i}") == "http://h:8080/items/{i}"
    assert describe(url=["http://h/a", "http://h/b", "http://h/a"]) == "http://h/a and 1 more"
    for url in [
        "http://user:secret@h/a?key=secret",
        "http://secret@h/a?secret",
        "https://{env:NAME}:x@h/a?b={i}",
    ]:
        # Users and queries are left out. They may be secret.
        assert describe(url=url) == f"{url.partition(':')[0]}://h/a?…"
    # Targets are named. So is the place that they have in common.
    targets = [{"name": name, "url": f"/{name}"} for name in ("item", "cart", "buy", "pay")]
    base = "https://user:secret@shop.example"
    assert describe(targets=targets[:2], **{"base-url": base}) == "item, cart at https://shop.example"
    assert describe(targets=targets, **{"base-url": base}) == (
        "item, cart, buy and 1 more at https://shop.example"
    )
    assert describe(targets=targets[:1]) == "item at delay servers"
    # A long url is cut. A head has one line.
    text = describe(url=f"http://h/{'x' * 200}?a")
    assert (len(text), text[-2:]) == (LONGEST_URL - 2, "x…")


DATA = DataFile(
    name="t.csv", format=DataFormat.CSV, digest="0" * 64, size=9, rows=9, columns=("a", "b"), index="1" * 64
)


def test_a_url_is_shown_as_it_is_sent_unless_its_query_is_hidden() -> None:
    """User and password are masked, names of secrets stay."""
    lines = RequestLines(Spec(urls=(Url("http://me:pw@h/{i}/{a}?b={b}&t={env:T}"),), data=DATA, method="PUT"))
    line = lines.build(7, {"a": "x y/é", "b": "&"})
    assert line.text == "PUT http://***@h/7/x%20y%2F%C3%A9?b=%26&t={env:T}"
    # Without its row the columns stay as they are written. The index is filled in.
    spec = Spec(base_url=Url("http://h"), targets=(Target(name="t", url="/{i}?q={a}"),), data=DATA)
    assert RequestLines(spec).build(3) == ("t", "GET", "http://h/3?q={a}")
    # What stands in a query can be hidden. But for placeholders, and for the names of parameters.
    url = "http://h/{i}?token=abc&q=a{i}&c={a}&t={env:T}&e=&flag"
    spec = Spec(urls=(Url(url),), data=DATA)
    hidden = RequestLines(spec, hides_queries=True).build(7).url
    assert hidden == "http://h/7?token=***&q=***7&c={a}&t={env:T}&e=&***"
    # Literal text is shown as it is sent and hidden as text. It is no placeholder.
    spec = Spec(urls=(Url("http://h/{literal:i}?q={literal:env:T}"),))
    assert RequestLines(spec).build(7).url == "http://h/{i}?q={env:T}"
    assert RequestLines(spec, hides_queries=True).build(7).url == "http://h/{i}?q=***"


def test_nothing_is_said_where_nobody_knows_the_request() -> None:
    """They are gone when somebody asks."""
    assert RequestLines(Spec()).build(3, {"a": "1"}) == ("", "GET", "")
    assert RequestLines(Spec()).find_target(3) == ""
    # Nothing is said of what an iteration of user code asks.
    scenario = CodeFile(f"a.py@sha256:{'0' * 64}:1:a.py")
    lines = RequestLines(Spec(engine=Engine.PYTHON, scenario=scenario, base_url=Url("http://h")))
    assert lines.build(7) == ("", "", "")
    assert not lines.build(7).text
    assert not lines.find_target(7)
