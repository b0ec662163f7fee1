import hashlib
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from oku_cli.replay.run_request import (
    RunRequest,
    fetch_inputs,
    fetch_request,
    fetch_spec_of_index,
    fill_in_body,
    make_single,
    replace_certificates,
    show_request,
)
from oku_core.accounting.run_state import RunState
from oku_core.data.data_format import DataFormat
from oku_core.errors import UserError
from oku_core.results.run_api import FailuresHead, RunRows
from oku_core.spec.data_file import DataFile
from oku_core.spec.parser import Source, build_mapping, parse_spec
from oku_core.spec.request_template import RequestMix
from oku_core.spec.spec import Spec
from oku_core.spec.target import Target
from oku_core.spec.values.file_reference import FileRef
from oku_core.spec.values.request_content import Header
from oku_core.spec.values.url import Url

DATA = DataFile(
    name="t.csv", format=DataFormat.CSV, digest="0" * 64, size=9, rows=9, columns=("sku",), index="1" * 64
)
BODY = "from a file: {sku}"
FILE = FileRef.build(hashlib.sha256(BODY.encode()).hexdigest(), len(BODY), "b.txt")
SPEC = Spec(
    requests=9,
    base_url=Url("http://h"),
    targets=(Target(name="a", url="/a"), Target(name="b", url="/b", method="POST", body=str(FILE))),
    data=DATA,
)


class Backend:
    """Has one run."""

    def __init__(self, spec: Spec = SPEC) -> None:
        self._spec = spec

    async def read_failures(self, run: str) -> AsyncGenerator[bytes]:
        """The head of a document."""
        mapping = build_mapping(self._spec)
        head = FailuresHead(run=run, state=RunState.COMPLETED, requests=0, unlisted=0, spec=mapping)
        yield msgspec.json.encode(head)[:-1] + b',"failures":['

    async def fetch_rows(self, run: str, start: int, stop: int) -> RunRows:
        """One row."""
        assert stop == start + 1
        return RunRows(run=run, start=start, rows=[{"sku": f"s{start}"}])

    async def fetch_run_file(self, _: str, digest: str) -> bytes:
        """The only file."""
        assert digest == FILE.digest
        return BODY.encode()


async def fetch(backend: Backend, index: int, *, is_to_be_sent: bool = True) -> RunRequest:
    """A request of its run."""
    spec = await fetch_spec_of_index(backend, "r1", index, "INDEX")  # type: ignore[arg-type]
    return await fetch_request(backend, "r1", index, spec, is_to_be_sent=is_to_be_sent)  # type: ignore[arg-type]


async def test_a_request_is_what_its_index_asks(tmp_path: Path) -> None:
    """With its row, and its body in place of a file."""
    backend = Backend()
    for index in range(9):
        request = await fetch(backend, index)
        assert request.template == RequestMix(SPEC).find(index)
        assert request.row == {"sku": f"s{index}"}
        files = await fetch_inputs(backend, "r1", request.list_bodies(), tmp_path)  # type: ignore[arg-type]
        body = fill_in_body(request, files).template.body
        assert body == (BODY if request.template.name == "b" else None)


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        (SPEC, "INDEX: 9 is not an index of run r1, whose last one is 8"),
        (Spec(requests=10), "run r1 asked delay servers of Oku's own, which are gone"),
    ],
)
async def test_what_is_not_there_is_said_in_one_line(spec: Spec, said: str) -> None:
    """An index that the run does not have, a target that is gone."""
    with pytest.raises(UserError, match=said):
        await fetch(Backend(spec), 9)


async def test_what_delay_servers_were_asked_can_be_shown() -> None:
    """They have no address any more, and the name under which they counted is shown to nobody."""
    backend = Backend(Spec(requests=10))
    request = await fetch(backend, 9, is_to_be_sent=False)
    assert request.template.url == "http://delay-server/{i}"
    assert request.template.headers == ("Oku-Run: ***",)


@pytest.mark.parametrize(
    ("given", "used"),
    [
        ({}, ("a", "b", "c")),
        ({"cacert": "/x"}, ("/x", "b", "c")),
        ({"cert": "/x"}, ("a", "/x", None)),
        ({"cert": "/x", "key": "/y"}, ("a", "/x", "/y")),
        ({"key": "/y"}, ("a", "b", "/y")),
    ],
)
def test_certificates_of_this_machine_replace_those_of_the_run(
    given: dict[str, str], used: tuple[str | None, ...]
) -> None:
    """A certificate without a key has it in its file."""
    request = RunRequest("r1", 0, Spec(cacert="a", cert="b", key="c"), None)
    spec = replace_certificates(request, given).spec
    assert (spec.cacert, spec.cert, spec.key) == used


def test_a_request_is_sent_at_once_whatever_the_load_was() -> None:
    """Neither a rate nor stages nor what many workers share hold it up."""
    loads = (
        {"rate": "5/s", "duration": "10s"},
        {"stages": ["10s: 0..5"]},
        {"max-rate": "1/s", "requests": 5},
    )
    for load in loads:
        single = make_single(parse_spec(Source("spec", {"url": "http://h/", **load})))
        assert {single.is_open, single.is_timed, single.has_clock} == {False}
        assert single.max_rate is None
        assert single.find_window(1) == 1


def build(row: dict[str, str] | None = None, url: str = "http://h:81", **target: Any) -> RunRequest:
    """Request 7 of a run, of one target."""
    fields: dict[str, Any] = {"name": "buy", "url": "/{i}/{sku}", **target}
    spec = Spec(urls=(Url(url),), targets=(Target(**fields),), data=DATA if row else None)
    return RunRequest("r1", 7, spec, row)


def test_secrets_are_masked() -> None:
    """User and password, values of headers that may be secret; what placeholders stand for is not."""
    headers = (Header("X-Key: abc-{sku}"), Header("Cookie: {env:C}"), Header("Accept: a/b"))
    shown = show_request(build({"sku": "1"}, url="http://me:pw@h", headers=headers))
    found = dict(shown.headers)
    assert found["Authorization"] == "Basic ***"
    assert (found["X-Key"], found["Cookie"], found["Accept"]) == ("***1", "{env:C}", "a/b")
    assert shown.url == "http://***@h/7/1"
    assert "pw" not in str(shown)
    # The length of a body with a secret is not told.
    shown = show_request(build(url="http://h", body="a={env:A}", method="POST"))
    assert dict(shown.headers)["Content-Length"] == "***"
    assert shown.body == "a={env:A}"


def test_a_request_is_shown_as_it_is_sent() -> None:
    """With the values of its row, each written as its place demands."""
    shown = show_request(
        build(
            {"sku": 'a "b"'}, method="POST", body='{"sku":"{sku}"}', is_json=True, headers=(Header("X: {i}"),)
        )
    )
    assert (shown.target, shown.url) == ("buy", "http://h:81/7/a%20%22b%22")
    assert shown.line == "POST /7/a%20%22b%22 HTTP/1.1"
    assert ("Host", "h:81") in shown.headers
    assert ("X", "7") in shown.headers
    assert shown.body == r'{"sku":"a \"b\""}'
    assert ("Content-Length", str(len(shown.body))) in shown.headers
    assert shown.row == {"sku": 'a "b"'}
    # What cannot be sent cannot be shown. The error names the request.
    with pytest.raises(UserError, match="request 7 of run r1 cannot be sent: "):
        show_request(build(url="ftp://h"))
