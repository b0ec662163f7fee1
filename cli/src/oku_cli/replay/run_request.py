"""The request of an index of a run: fetched from where the run is, and shown without secrets as HTTP/1.1."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from oku_cli.backends.run_backend import RunBackend, RunData, fetch_run_spec
from oku_cli.report.masking import mask_header
from oku_cli.views.replay_view import ShownRequest
from oku_core.data.row_reader import RowValues
from oku_core.errors import UserError
from oku_core.http_client.request_head import build_origin
from oku_core.process.redaction import MASK, redact
from oku_core.spec.description import RequestLines
from oku_core.spec.files import EVERYWHERE, SpecFiles
from oku_core.spec.request_template import RequestMix, RequestTemplate, ask_servers, pick_request
from oku_core.spec.spec import OPEN_END, Spec
from oku_core.spec.values.file_reference import FileRef, find_file_reference
from oku_core.spec.values.request_content import Header
from oku_core.spec.values.template import SECRET_PLACEHOLDER
from oku_workers.engines.http.request_parts import list_values
from oku_workers.engines.httptools.request import build_request

_DELAY_SERVER = "http://delay-server"
"""In place of the addresses of delay servers, which are gone."""


@dataclass(frozen=True)
class RunRequest:
    """A request of a run: its spec is of this kind of request alone; it has no row if the run has no data."""

    run: str
    index: int
    spec: Spec
    row: Mapping[str, str] | None

    @property
    def template(self) -> RequestTemplate:
        """The kind of request that it is."""
        return RequestMix(self.spec).find(self.index)

    def build_rows(self) -> RowValues | None:
        """Its row, as engines read it; None if the request uses none."""
        values = list_values(self.spec)
        return RowValues(values, self.row) if values else None

    def list_bodies(self) -> Iterator[FileRef]:
        """Yield the file that is its body, if it is one."""
        if (reference := find_file_reference(self.template.body)) is not None:
            yield reference

    def list_certificates(self) -> Iterator[FileRef]:
        """Yield the files that its connection needs."""
        for text in (self.spec.cacert, self.spec.cert, self.spec.key):
            if (reference := find_file_reference(text)) is not None:
                yield reference


async def fetch_spec_of_index(backend: RunBackend, run: str, index: int, flag: str) -> Spec:
    """The spec of a run that has this index, which the user gave with a flag; else a `UserError`."""
    spec = await fetch_run_spec(backend, run)
    if index >= spec.requests:
        last = "" if spec.requests >= OPEN_END else f", whose last one is {spec.requests - 1}"
        raise UserError(f"{flag}: {index} is not an index of run {run}{last}")
    return spec


async def fetch_request(
    backend: RunBackend, run: str, index: int, spec: Spec, *, is_to_be_sent: bool
) -> RunRequest:
    """Fetch a request of a run, but for its files.

    Raises:
        UserError: there is no coordinator and no ledger to ask.
    """
    if spec.brings_servers and is_to_be_sent:
        raise UserError(
            f"run {run} asked delay servers of Oku's own, which are gone: there is nothing to ask"
        )
    picked = pick_request(ask_servers(spec, MASK, [_DELAY_SERVER]), index)
    row = await RunData(backend, run, spec).fetch(index, most=1)
    return RunRequest(run, index, picked, row)


async def fetch_inputs(backend: RunBackend, run: str, wanted: Iterable[FileRef], folder: Path) -> SpecFiles:
    """Fetch files of a run into a private folder."""
    for file in wanted:
        (folder / file.digest).write_bytes(await backend.fetch_run_file(run, file.digest))
    return SpecFiles(EVERYWHERE.folders, folder.joinpath)


def fill_in_body(request: RunRequest, files: SpecFiles) -> RunRequest:
    """The request with the text of its body, which may have been a file."""
    return replace(request, spec=files.fill_in_bodies(request.spec))


def replace_certificates(request: RunRequest, paths: Mapping[str, str]) -> RunRequest:
    """The request with certificates of this machine in place of its run's.

    Args:
        request: of the run.
        paths: the full path of each that is replaced: `cacert`, `cert`, `key`. A certificate comes with its
            key, which is in the same file unless another is given.
    """
    replaced = {"key": None, **paths} if "cert" in paths else paths
    return replace(request, spec=msgspec.structs.replace(request.spec, **replaced))


def make_single(spec: Spec) -> Spec:
    """A spec whose request is sent at once, without the load of its run."""
    return msgspec.structs.replace(
        spec,
        rate=None,
        duration_s=None,
        stages=(),
        warm_up_s=None,
        max_rate=None,
        concurrency=1,
        thresholds=(),
    )


_END = b"\r\n\r\n"


def show_request(request: RunRequest) -> ShownRequest:
    """Write a request down, with its body in place of a file; names of secrets stay as they are.

    Raises:
        UserError: it cannot be sent, so that there is nothing to show.
    """
    template = request.template
    try:
        origin = build_origin(template.url)
        content = build_request(_mask(template), origin, request.build_rows())(request.index)
    except ValueError as error:
        raise UserError(f"request {request.index} of run {request.run} cannot be sent: {error}") from error
    head, _, body = content.partition(_END)
    protocol = "HTTP/2" if request.spec.http2 else "HTTP/1.1"
    line, *headers = head.decode().split("\r\n")
    text = body.decode(errors="replace")
    own_length = SECRET_PLACEHOLDER.search(text) and not any(
        header.is_named("content-length") for header in template.headers
    )
    shown = [
        (name, _mask_own(name, value, template, is_unknown=bool(own_length)))
        for name, _, value in (header.partition(": ") for header in headers)
    ]
    return ShownRequest(
        run=request.run,
        index=request.index,
        target=template.name,
        url=RequestLines(request.spec).build(request.index, request.row or {}).url,
        line=redact(f"{line.removesuffix('HTTP/1.1')}{protocol}", queries=False),
        headers=shown,
        body=None if template.body is None or text.encode() != body else text,
        body_bytes=len(body),
        row=request.row,
    )


def _mask(template: RequestTemplate) -> RequestTemplate:
    masked = tuple(Header(mask_header(header, template.columns)) for header in template.headers)
    return msgspec.structs.replace(template, headers=masked)


def _mask_own(name: str, value: str, template: RequestTemplate, *, is_unknown: bool) -> str:
    """Mask parts that are not in the spec: the user of the URL, and the length of a body with a secret."""
    if name == "Content-Length" and is_unknown:
        return MASK
    if name == "Authorization" and not any(header.is_named("authorization") for header in template.headers):
        return f"Basic {MASK}"
    return value
