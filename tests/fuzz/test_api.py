"""The API against the document that the project publishes, with a worker that carries out what is accepted.

Every call gets an answer that the document has, with the body that it says; none is 5xx for want of a check.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from tests.kit.coordinators.coordinator import TOKEN
from tests.kit.faults.abuse import Site, read_rss_mb, run_site
from tests.kit.runs.local_run import wait_until

from oku_core.spec.spec import Engine

DOCUMENT = Path(__file__).parents[2] / "docs" / "openapi.json"
EXAMPLES = 80
MOST_MB = 120
LIMITS: dict[str, Any] = {
    "requests": 20, "concurrency": 20, "timeout": "300ms", "grace": "100ms", "workers": 1, "servers": 1,
    "rate": "40/s", "duration": "500ms", "stages": "500ms:40/s", "max-rate": "200/s", "warm-up": "100ms",
    "delay": "1ms", "proxy": "http://127.0.0.1:9", "max-redirects": 2,
}  # fmt: skip
"""What accepted specs have instead of their own, so that they end soon and reach nobody but this machine."""
SPECS = st.fixed_dictionaries(
    {},
    optional={
        "requests": st.integers(1, 50),
        "method": st.sampled_from(["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "QUERY", "TRACE"]),
        "header": st.lists(
            st.builds("X-{}: {}".format, st.text(max_size=5), st.text(max_size=20)), max_size=3
        ),
        "body": st.text(max_size=50),
        "concurrency": st.integers(1, 20),
        "engine": st.sampled_from(list(Engine)),
        "expect-status": st.sampled_from(["200", "2xx", [200, 404], "5xx"]),
        "range-size": st.integers(1, 100),
        "seed": st.integers(-1, 2**64),
        "name": st.text(max_size=20),
        "max-redirects": st.integers(0, 3),
        "cookies": st.booleans(),
        "insecure": st.booleans(),
        "keepalive": st.booleans(),
        "max-rate": st.sampled_from(["200/s", 500, "0/s"]),
        "warm-up": st.sampled_from(["50ms", "1s"]),
    },
)
"""Most of these are accepted."""
LOADS: st.SearchStrategy[dict[str, object]] = st.sampled_from(
    [
        {"duration": "300ms"},
        {"stages": ["300ms:0..5", "100ms:5..5"]},
        {"rate": "40/s", "requests": 10},
        {"rate": "40/s", "duration": "250ms", "arrivals": "poisson"},
        {"stages": [{"name": "up", "for": "500ms", "rate": "0..40"}], "late": "send"},
    ]
)
"""What shapes a run over time, and takes the place of what contradicts it."""
CONTRADICTED = {"requests", "concurrency", "range-size", "max-rate"}
Case = Any
"""A call: of the library, which gives it no type that can be named."""
AT_REST = {"completed", "failed", "cancelled", "paused"}


def list_operations() -> Iterator[Any]:
    """Every call of the document; a stream lasts as long as its run, and is left out."""
    document = json.loads(DOCUMENT.read_text())
    del document["paths"]["/api/runs/{run}/ticks"]
    for found in schemathesis.openapi.from_dict(document).get_all_operations():
        assert isinstance(found, Ok)
        operation = found.ok()
        yield pytest.param(operation, id=operation.label)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A coordinator, a worker and a delay server."""
    with run_site(tmp_path_factory.mktemp("site")) as site:
        yield site


def tame(case: Case, site: Site) -> None:
    """Let an accepted spec send a little, and to our own server only."""
    if isinstance(case.body, dict):
        taken = {
            key: value for key, value in LIMITS.items() if key in case.body and is_plausible(case.body[key])
        }
        case.body.update(taken)
        if "url" in case.body or not {"servers", "delay"} & case.body.keys():
            case.body["url"] = site.target if is_plausible(case.body.get("url", "")) else None
        case.body.setdefault("requests", 20)
        case.body.setdefault("timeout", "300ms")


def is_plausible(value: object) -> bool:
    """Whether it is of a kind that might be accepted."""
    return isinstance(value, str | int | float | list) and not isinstance(value, bool)


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("operation", list(list_operations()))
def test_the_api_answers_as_its_document_says(operation: Any, site: Site, scale: int) -> None:
    """Every answer is documented, whether the call is valid or not."""

    @settings(max_examples=EXAMPLES * scale, suppress_health_check=list(HealthCheck))
    @given(st.one_of(*(operation.as_strategy(generation_mode=mode) for mode in GenerationMode)))
    def ask(case: Case) -> None:
        tame(case, site)
        headers = {"Authorization": f"Bearer {TOKEN}"}
        named = case.path_parameters.get("run") if case.path_parameters else None
        if named is not None and len(str(named)) % 2 and (runs := site.api.list_runs()):
            case.path_parameters["run"] = runs[0]["run"]
        case.call_and_validate(
            base_url=site.api.url,
            headers=headers,
            checks=[
                not_a_server_error,
                status_code_conformance,
                content_type_conformance,
                response_schema_conformance,
            ],
        )

    ask()


@pytest.mark.timeout(3600)
def test_plausible_specs_are_accepted_or_refused(site: Site, scale: int) -> None:
    """A refusal is one line that says why."""

    @settings(max_examples=EXAMPLES * scale, suppress_health_check=list(HealthCheck))
    @given(SPECS, st.sampled_from(["", "?a={i}", "#{i}", "/{i}/{i}", "{", "%zz", "\u00e4", " "]))
    def submit(spec: dict[str, Any], end: str) -> None:
        url = {} if "seed" in spec else {"url": site.target + end}
        status, answer = site.api.call("POST", "/api/runs", {"requests": 10, "timeout": "300ms"} | spec | url)
        assert status in {201, 400, 429}
        assert status == 201 or answer["error"].isprintable()

    @settings(max_examples=EXAMPLES * scale // 8, suppress_health_check=list(HealthCheck))
    @given(SPECS, LOADS)
    def submit_shaped(spec: dict[str, Any], load: dict[str, object]) -> None:
        kept = {key: value for key, value in spec.items() if key not in CONTRADICTED}
        status, answer = site.api.call(
            "POST", "/api/runs", {"timeout": "300ms", "url": site.target} | kept | load
        )
        assert status in {201, 400, 429}
        assert status == 201 or answer["error"].isprintable()

    submit()
    submit_shaped()


def test_what_was_accepted_was_carried_out(site: Site) -> None:
    """Every run comes to rest, and nothing unexpected is logged."""
    assert len(site.api.list_runs()) > EXAMPLES / 8
    for run in site.api.list_runs():
        if run["state"] == "paused":
            site.api.call("POST", f"/api/runs/{run['run']}/cancel")
    wait_until(
        lambda: all(run["state"] in AT_REST for run in site.api.list_runs()), 120, "all runs are at rest", 0.5
    )
    assert "Traceback" not in site.coordinator.log.read_text()
    assert read_rss_mb(site.coordinator.pid) < MOST_MB * 2


def test_histories_are_what_the_document_says(site: Site) -> None:
    """A run that was carried out has a history with leases, samples and slices of the types that are told."""
    components = json.loads(DOCUMENT.read_text())["components"]
    validator = Draft202012Validator({"$ref": "#/components/schemas/History", "components": components})
    completed = [run["run"] for run in site.api.list_runs() if run["state"] == "completed"]
    for run in completed:
        _, history = site.api.call("GET", f"/api/runs/{run}/history")
        validator.validate(history)
        assert history["leases"]
        assert history["slices"]
    assert completed
