"""Any spec that a user can have written, for property tests."""

from typing import Any

from hypothesis import strategies as st

from oku_core.spec.spec import Engine, Spec
from oku_core.spec.values.body import find_body_type
from oku_core.spec.values.delay import parse_delay
from oku_core.spec.values.expected_status import ExpectedStatus
from oku_core.spec.values.header import Header
from oku_core.spec.values.url import Url

COUNTS = st.none() | st.integers(1, 1000)
BODIES = st.text(st.characters(exclude_categories=["Cs"]), max_size=20).filter(
    lambda text: find_body_type(text) is None
)
"""JSON and forms would come with a header that says so."""
NAMES = st.text(
    st.characters(codec="utf-8", categories=["L", "N", "P"], include_characters=" "), max_size=100
)
URLS = st.sampled_from(
    ["http://localhost/{i}", "https://[::1]:8443/?a={i}", "http://user@h.example", "http://h/"]
).map(Url)
HEADERS = st.builds(
    "{}: {}".format, st.sampled_from(["A", "X-Id"]), st.sampled_from(["", "b", "{i}", "a: b\tc"])
).map(Header)
STATUSES = (st.integers(100, 599).map(str) | st.sampled_from(["1xx", "2xx", "5xx"])).map(ExpectedStatus)
DELAYS = st.sampled_from(["0s", "20ms", "0..3s", "5ms..80ms", "exp:50ms", "lognormal:40ms,0.5"]).map(
    parse_delay
)
FILES = st.none() | st.sampled_from(["ca.pem", "/etc/ssl/my certificates.pem"])


@st.composite
def transports(draw: st.DrawFn, engine: Engine) -> dict[str, Any]:
    """What a spec may say of TLS, and of what only one engine can do."""
    cert = draw(FILES)
    fields: dict[str, Any] = {
        "cacert": draw(FILES),
        "cert": cert,
        "key": None if cert is None else draw(FILES),
        "insecure": draw(st.booleans()),
    }
    if engine is Engine.AIOHTTP:
        fields |= {
            "proxy": draw(
                st.none()
                | st.sampled_from(["http://127.0.0.1:3128", "http://me:secret@proxy.example/"]).map(Url)
            ),
            "max_redirects": draw(st.integers(0, 100)),
            "cookies": draw(st.booleans()),
        }
    return fields


@st.composite
def specs(draw: st.DrawFn) -> Spec:
    """Any spec that a user can have written."""
    urls = tuple(draw(st.lists(URLS, max_size=3)))
    own: dict[str, Any] = {}
    if not urls:
        own = {
            "servers": draw(COUNTS),
            "delay": draw(st.none() | DELAYS),
            "seed": draw(st.none() | st.integers(0, 2**63 - 1)),
        }
    engine = draw(st.sampled_from(Engine))
    return Spec(
        requests=draw(st.integers(1, 10**15)),
        urls=urls,
        method=draw(st.sampled_from(["GET", "POST", "PURGE"])),
        headers=tuple(draw(st.lists(HEADERS, max_size=3))),
        body=draw(st.none() | BODIES),
        concurrency=draw(st.integers(1, 1_000_000)),
        workers=draw(COUNTS),
        engine=engine,
        timeout_s=draw(st.floats(0.001, 3600)),
        grace_s=draw(st.none() | st.floats(0, 3600)),
        expect_status=tuple(draw(st.lists(STATUSES, min_size=1, max_size=3))),
        range_size=draw(COUNTS),
        name=draw(NAMES),
        **draw(transports(engine)),
        **own,
    )
