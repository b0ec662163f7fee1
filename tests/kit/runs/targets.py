"""Any targets that a user can have written, and any expectations, for property tests."""

from typing import Any

import msgspec
from hypothesis import strategies as st

from oku_core.spec.expectation import Expectation
from oku_core.spec.spec import Spec
from oku_core.spec.target import HEAVIEST, Target
from oku_core.spec.values.body import find_body_type
from oku_core.spec.values.check import JsonValue, SizeBound
from oku_core.spec.values.expected_status import ExpectedStatus
from oku_core.spec.values.header import Header
from oku_core.spec.values.url import Url

BODIES = st.text(st.characters(exclude_categories=["Cs"]), max_size=20).filter(
    lambda text: not text.startswith("@") and find_body_type(text) is None
)
"""JSON and forms would come with a header that says so, and the mark of a file would be one."""
HEADERS = st.builds(
    "{}: {}".format, st.sampled_from(["A", "X-Id"]), st.sampled_from(["", "b", "{i}", "a: b\tc"])
).map(Header)
STATUSES = (st.integers(100, 599).map(str) | st.sampled_from(["1xx", "2xx", "5xx"])).map(ExpectedStatus)
RELATIVE = st.sampled_from(["/", "/items/{i}", "/a/?b={i}", "?q", "//", "/{env:PATH_OF_IT}"])
ABSOLUTE = st.sampled_from(["http://h/{i}", "https://[::1]:8443/a", "http://me:{env:P}@h.example"])
JSON_BODIES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["", "{i}", "{env:TOKEN}", "17", "1.10", "-0", "010", "true", "null", "a/ü\n\x85"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "{i}", "", "1", "~"]), inner, max_size=3)
    ),
    max_leaves=5,
)
_FEW: dict[str, Any] = {"max_size": 2}


@st.composite
def expectations(draw: st.DrawFn) -> Expectation:
    """What a target may expect, or all of them."""
    texts = draw(st.lists(st.sampled_from(["ok", '"id": 1', "ü", " ", "1"]), **_FEW))
    patterns = draw(st.lists(st.sampled_from(["[0-9]+", "^$", "(?i)ä|ö", "a{3}", r"\d"]), **_FEW))
    values = draw(st.lists(st.sampled_from(["/id=17", '/a~1b/0="x"', "=null", "/n=1e3", "/t=x=y"]), **_FEW))
    sizes = draw(st.lists(st.sampled_from(["0", "> 0", "<=10kB", " = 1KiB "]), **_FEW))
    return Expectation(
        status=tuple(draw(st.lists(STATUSES, **_FEW))),
        body=tuple(texts),
        match=tuple(patterns),
        json=tuple(map(JsonValue, values)),
        header=tuple(draw(st.lists(HEADERS, **_FEW))),
        size=tuple(map(SizeBound, sizes)),
        within_s=draw(st.none() | st.floats(0.001, 3600)),
    )


@st.composite
def targets(draw: st.DrawFn, name: str, urls: st.SearchStrategy[str]) -> Target:
    """One target of this name."""
    headers = tuple(draw(st.lists(HEADERS, **_FEW)))
    body, is_json = draw(st.none() | BODIES), draw(st.booleans())
    if is_json:
        body = msgspec.json.encode(draw(JSON_BODIES)).decode()
        headers = (*headers, Header("Content-Type: application/json"))
    return Target(
        name=name,
        weight=draw(st.integers(1, HEAVIEST)),
        url=draw(urls),
        method=draw(st.sampled_from(["GET", "POST", "PURGE"])),
        headers=headers,
        body=body,
        is_json=is_json,
        expect=draw(expectations()),
    )


@st.composite
def with_targets(draw: st.DrawFn, spec: Spec) -> Spec:
    """A spec with targets in place of the one that it has."""
    bases = st.none() | st.sampled_from(["http://shop.example", "https://h:1/api/"]).map(Url)
    base = draw(bases) if spec.urls else None
    urls = RELATIVE if spec.brings_servers else ABSOLUTE if base is None else RELATIVE | ABSOLUTE
    name = st.sampled_from(["home", "a b", "/{i}", "日本 7 %", "x" * 100])
    names = draw(st.lists(name, min_size=1, max_size=3, unique=True))
    return msgspec.structs.replace(
        spec,
        urls=(),
        method="GET",
        body=None,
        base_url=base,
        targets=tuple(draw(targets(name, urls)) for name in names),
    )


@st.composite
def with_expectations(draw: st.DrawFn, spec: Spec) -> Spec:
    """A spec that expects something of all answers."""
    expected = msgspec.structs.asdict(draw(expectations()))
    del expected["status"]
    return msgspec.structs.replace(spec, **{f"expect_{key}": value for key, value in expected.items()})
