"""Any targets that a user can have written, and any expectations, for property tests."""

from typing import TypeVar

import msgspec
from hypothesis import strategies as st

from oku_core.spec.spec import Spec
from oku_core.spec.target import HEAVIEST, Expectation, Target
from oku_core.spec.values.check import ExpectedStatus, JsonValue, SizeBound
from oku_core.spec.values.request_content import Header, find_body_type
from oku_core.spec.values.url import Url

_T = TypeVar("_T")

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
_TEXTS = st.sampled_from(["ok", '"id": 1', "ü", " ", "1"])
_PATTERNS = st.sampled_from(["[0-9]+", "^$", "(?i)ä|ö", "a{3}", r"\d"])
_VALUES = st.sampled_from(["/id=17", '/a~1b/0="x"', "=null", "/n=1e3", "/t=x=y"]).map(JsonValue)
_SIZES = st.sampled_from(["0", "> 0", "<=10kB", " = 1KiB "]).map(SizeBound)


def _list_few(items: st.SearchStrategy[_T]) -> st.SearchStrategy[tuple[_T, ...]]:
    return st.lists(items, max_size=2).map(tuple)


# Strategies are made once: to make them takes longer than to draw from them.
_EXPECTATIONS = st.builds(
    Expectation,
    status=_list_few(STATUSES),
    body=_list_few(_TEXTS),
    match=_list_few(_PATTERNS),
    json=_list_few(_VALUES),
    header=_list_few(HEADERS),
    size=_list_few(_SIZES),
    within_s=st.none() | st.floats(0.001, 3600),
)
_OWN_HEADERS = _list_few(HEADERS)
_OWN_BODIES = st.none() | BODIES
_WEIGHTS = st.integers(1, HEAVIEST)
_METHODS = st.sampled_from(["GET", "POST", "PURGE"])
_BASES = st.none() | st.sampled_from(["http://shop.example", "https://h:1/api/"]).map(Url)
_NAMES = st.lists(
    st.sampled_from(["home", "a b", "/{i}", "日本 7 %", "x" * 100]), min_size=1, max_size=3, unique=True
)
_RELATIVE_OR_ABSOLUTE = RELATIVE | ABSOLUTE


def expectations() -> st.SearchStrategy[Expectation]:
    """What a target may expect, or all of them."""
    return _EXPECTATIONS


@st.composite
def targets(draw: st.DrawFn, name: str, urls: st.SearchStrategy[str]) -> Target:
    """One target of this name."""
    headers = draw(_OWN_HEADERS)
    body, is_json = draw(_OWN_BODIES), draw(st.booleans())
    if is_json:
        body = msgspec.json.encode(draw(JSON_BODIES)).decode()
        headers = (*headers, Header("Content-Type: application/json"))
    return Target(
        name=name,
        weight=draw(_WEIGHTS),
        url=draw(urls),
        method=draw(_METHODS),
        headers=headers,
        body=body,
        is_json=is_json,
        expect=draw(_EXPECTATIONS),
    )


@st.composite
def with_targets(draw: st.DrawFn, spec: Spec) -> Spec:
    """A spec with targets in place of the one that it has."""
    base = draw(_BASES) if spec.urls else None
    urls = RELATIVE if spec.brings_servers else ABSOLUTE if base is None else _RELATIVE_OR_ABSOLUTE
    names = draw(_NAMES)
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
    expected = msgspec.structs.asdict(draw(_EXPECTATIONS))
    del expected["status"]
    return msgspec.structs.replace(spec, **{f"expect_{key}": value for key, value in expected.items()})
