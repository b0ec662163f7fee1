"""Any spec that a user can have written, for property tests."""

from typing import Any

import msgspec
from hypothesis import assume
from hypothesis import strategies as st
from tests.kit.runs.targets import BODIES, HEADERS, STATUSES, with_expectations, with_targets

from oku_core.schedule.stage import Arrivals
from oku_core.spec.load import complete_load, iter_load_faults
from oku_core.spec.spec import HTTP1_ENGINES, USER_CODE_ENGINES, Engine, Hook, Spec
from oku_core.spec.values.delay import parse_delay
from oku_core.spec.values.file_reference import CodeFile
from oku_core.spec.values.load_values import Late, StageText
from oku_core.spec.values.quantity import Rate
from oku_core.spec.values.request_content import CLOSE
from oku_core.spec.values.url import Url

COUNTS = st.none() | st.integers(1, 1000)
NAMES = st.text(
    st.characters(codec="utf-8", categories=["L", "N", "P"], include_characters=" "), max_size=100
)
URLS = st.sampled_from(
    ["http://localhost/{i}", "https://[::1]:8443/?a={i}", "http://user@h.example", "http://h/"]
).map(Url)
DELAYS = st.sampled_from(["0s", "20ms", "0..3s", "5ms..80ms", "exp:50ms", "lognormal:40ms,0.5"]).map(
    parse_delay
)
RATES = st.sampled_from(["5000/s", "300/m", "1.5k/s", "0.7/s", "7", "40/h"]).map(Rate)
RATE_STAGES = st.sampled_from(["1m:0..5000/s", "soak=10m:5k/s", "1.5s:7/s", "500ms:70..30/m"]).map(StageText)
CONCURRENCY_STAGES = st.sampled_from(["1m:0..200", "soak=10m:5k", "1.5s:7", "500ms:70..30"]).map(StageText)
LATES = st.sampled_from(["1s", "20ms", "send"]).map(Late)
CODE_FILES = st.sampled_from(["a.py", "lib/b.py", "lib/ü c.json"]).map(
    lambda path: CodeFile(f"{path}@sha256:{'0' * 64}:7:{path.rpartition('/')[2]}")
)
FILES = st.none() | st.sampled_from(["ca.pem", "/etc/ssl/my certificates.pem"])
# Strategies are made once: to make them takes longer than to draw from them.
_PROXIES = st.none() | st.sampled_from(["http://127.0.0.1:3128", "http://me:secret@proxy.example/"]).map(Url)
_STAGES = st.sampled_from([RATE_STAGES, CONCURRENCY_STAGES]).flatmap(
    lambda texts: st.lists(texts, min_size=1, max_size=3, unique=True).map(tuple)
)
_LENGTHS = st.integers(1000, 10**6).map(lambda thousandths: thousandths / 1000)
_MAX_RATES = st.none() | RATES
_GIVEN = {
    is_derived: st.sets(st.sampled_from(["concurrency"] if is_derived else ["concurrency", "requests"]))
    for is_derived in (True, False)
}
_PLAIN: dict[str, st.SearchStrategy[Any]] = {
    "requests": st.integers(1, 10**15),
    "method": st.sampled_from(["GET", "POST", "PURGE"]),
    "body": st.none() | BODIES,
    "concurrency": st.integers(1, 1_000_000),
    "workers": COUNTS,
    "timeout_s": st.floats(0.001, 3600),
    "grace_s": st.none() | st.floats(0, 3600),
    "expect_status": st.lists(STATUSES, min_size=1, max_size=3).map(tuple),
    "range_size": COUNTS,
    "seed": st.none() | st.integers(0, 2**63 - 1),
    "name": NAMES,
}
_OWN_SERVERS: dict[str, st.SearchStrategy[Any]] = {"servers": COUNTS, "delay": st.none() | DELAYS}
_URLS = st.lists(URLS, max_size=3).map(tuple)
_ENGINES = st.sampled_from(HTTP1_ENGINES)
_HEADERS = st.lists(HEADERS, max_size=3)


def _draw_all(draw: st.DrawFn, strategies: dict[str, st.SearchStrategy[Any]]) -> dict[str, Any]:
    return {name: draw(strategy) for name, strategy in strategies.items()}


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
            "proxy": draw(_PROXIES),
            "max_redirects": draw(st.integers(0, 100)),
            "cookies": draw(st.booleans()),
        }
    return fields


@st.composite
def plans(draw: st.DrawFn) -> dict[str, Any]:
    """What a spec may say of its load over time, by attribute; it may contradict itself."""
    length, rate, stages = {"duration_s": draw(_LENGTHS)}, {"rate": draw(RATES)}, {"stages": draw(_STAGES)}
    plan: dict[str, Any] = draw(st.sampled_from([{}, length, rate, rate | length, stages]))
    plan["warm_up_s"] = draw(st.sampled_from([None, 0.3]))
    if Spec(**plan).is_open:
        fields = {"arrivals": draw(st.sampled_from(Arrivals)), "late": draw(LATES)}
        return plan | fields | {"range_size": None}
    return plan | {"max_rate": draw(_MAX_RATES), "range_size": draw(COUNTS)}


@st.composite
def specs(draw: st.DrawFn) -> Spec:
    """Any spec that a user can have written."""
    spec = draw(with_expectations(msgspec.structs.replace(draw(plain_specs()), **draw(plans()))))
    if draw(st.booleans()):
        spec = draw(with_targets(spec))
    is_derived = spec.is_open and (spec.stages or spec.duration_s is not None)
    given = draw(_GIVEN[bool(is_derived)])
    if not spec.is_open and not spec.is_timed:
        return spec
    if spec.rate is not None and not is_derived:
        given.add("requests")
        spec = msgspec.structs.replace(spec, requests=draw(st.integers(1, 10**4)))
    assume(not any(iter_load_faults(spec, given)))
    return complete_load(spec, given)


@st.composite
def http2_specs(draw: st.DrawFn) -> Spec:
    """Any spec of HTTP/2 that a user can have written."""
    spec = draw(specs())
    place: dict[str, Any] = {}
    if spec.brings_servers:
        url = Url("http://h/")
        place = {"base_url": url} if spec.targets else {"urls": (url,)}
    return msgspec.structs.replace(
        spec,
        **place,
        servers=None,
        delay=None,
        headers=tuple(header for header in spec.headers if header is not CLOSE),
        keepalive=True,
        engine=Engine.NGHTTP2,
        http2=True,
        streams=draw(st.integers(1, 10_000)),
        connections=draw(st.none() | st.integers(1, 100_000)),
        proxy=None,
        max_redirects=0,
        cookies=False,
    )


@st.composite
def user_code_specs(draw: st.DrawFn) -> Spec:
    """Any spec of user code that a command can have made."""
    engine = draw(st.sampled_from(sorted(USER_CODE_ENGINES)))
    names = st.lists(st.sampled_from(["a", "ü b", "Buyer"]), max_size=2, unique=True).map(tuple)
    own: dict[str, Any] = {"hooks": draw(st.sampled_from([(), (Hook.SETUP,), tuple(Hook)]))}
    if engine is Engine.LOCUST:
        own = {"user_classes": draw(names), "tags": draw(names), "exclude_tags": draw(names)}
    scenario, *include = draw(st.lists(CODE_FILES, min_size=1, max_size=3, unique_by=lambda file: file.path))
    spec = Spec(
        engine=engine,
        scenario=scenario,
        include=tuple(include),
        requests=draw(st.integers(1, 10**15)),
        base_url=draw(st.none() | st.just(Url("http://h:1/api"))),
        iteration_timeout_s=draw(st.none() | st.floats(0.001, 3600)),
        concurrency=draw(st.integers(1, 1_000_000)),
        workers=draw(COUNTS),
        name=draw(NAMES),
        **own,
    )
    spec = msgspec.structs.replace(spec, **draw(plans()))
    given = {"scenario", "engine", "requests"}
    if not (spec.stages and not spec.is_open):
        given.add("concurrency")
    if spec.is_open and (spec.stages or spec.duration_s is not None):
        given.discard("requests")
    elif spec.is_open:
        spec = msgspec.structs.replace(spec, requests=draw(st.integers(1, 10**4)))
    assume(not any(iter_load_faults(spec, given)))
    return complete_load(spec, given)


@st.composite
def plain_specs(draw: st.DrawFn) -> Spec:
    """Any spec of a run that only the number of its requests ends, as fast as they are answered."""
    urls, engine, keepalive = draw(_URLS), draw(_ENGINES), draw(st.booleans())
    headers = (*draw(_HEADERS), *(() if keepalive else (CLOSE,)))
    own = {} if urls else _draw_all(draw, _OWN_SERVERS)
    return Spec(
        urls=urls,
        headers=headers,
        engine=engine,
        keepalive=keepalive,
        **_draw_all(draw, _PLAIN),
        **draw(transports(engine)),
        **own,
    )
