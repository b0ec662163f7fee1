"""The parts of the requests of a template, from which engines and previews build a request."""

from collections.abc import Collection, Iterator
from typing import NamedTuple

from yarl import URL

from oku_core.data.data_format import DataError
from oku_core.data.escape import AS_TEXT, IN_HEADER, IN_JSON, IN_URL
from oku_core.data.row_reader import RowReader, Value
from oku_core.http_client.request_head import build_target, list_own_headers
from oku_core.spec.request_template import RequestMix, RequestTemplate
from oku_core.spec.spec import Spec
from oku_core.spec.values.file_reference import FindFile
from oku_core.spec.values.template import Template
from oku_core.spec.values.url import Url
from oku_workers.engines.contract.engine_protocol import EngineError


class TargetParts(NamedTuple):
    """Path and query as a request line has them.

    Attributes:
        path: at least `/`.
        query: without the question mark; empty if there is none.
    """

    path: Template
    query: Template

    def join(self) -> Template:
        """Path and query as one text."""
        has_query = self.query.literal or self.query.places
        return self.path + "?" + self.query if has_query else self.path


class RequestParts(NamedTuple):
    """The parts of the requests of a template that may differ from index to index.

    Attributes:
        target: path and query.
        headers: names and values, in order.
        body: None without one.
    """

    target: TargetParts
    headers: tuple[tuple[str, Template], ...]
    body: Template | None

    def iter_values(self) -> Iterator[Value]:
        """The values that the parts need of each row, possibly repeated."""
        for part in (*self.target, *(value for _, value in self.headers), self.body):
            if part is not None:
                yield from part.values


def split_target(url: Url, columns: Collection[str] = ()) -> TargetParts:
    """Split path and query off a URL; values are percent-encoded in them."""
    target = build_target(url)
    return TargetParts(
        Template.parse(target.path, columns, IN_URL), Template.parse(target.query, columns, IN_URL)
    )


def split_request(template: RequestTemplate) -> RequestParts:
    """Split a template into its parts, with every value escaped as its place demands."""
    columns, in_body = template.columns, IN_JSON if template.is_json else AS_TEXT
    return RequestParts(
        split_target(template.url, columns),
        tuple((header.name, Template.parse(header.value, columns, IN_HEADER)) for header in template.headers),
        None if template.body is None else Template.parse(template.body, columns, in_body),
    )


def list_all_headers(
    template: RequestTemplate, origin: URL, parts: RequestParts
) -> Iterator[tuple[str, Template]]:
    """Oku's own headers for an origin and those of a template, in the order in which they are sent."""
    given = {header.name.lower() for header in template.headers}
    for name, value in list_own_headers(origin, given, has_body=template.body is not None):
        yield name, Template([value])
    yield from parts.headers


def list_values(spec: Spec) -> list[Value]:
    """The values that the requests of a spec need of each row, without repetition; empty if they use none."""
    parts = map(split_request, RequestMix(spec).templates)
    return list(dict.fromkeys(value for part in parts for value in part.iter_values()))


def open_data_rows(spec: Spec, find_file: FindFile) -> RowReader | None:
    """Open the data of a spec; None if it has none, or no request uses it. The caller closes it.

    Args:
        spec: with the URLs of its targets, including Oku's own delay servers.
        find_file: gives the path of a file by its digest.

    Raises:
        EngineError: the files cannot be opened, or do not match the spec.
    """
    data, values = spec.data, list_values(spec)
    if data is None or not values:
        return None
    try:
        return RowReader(data.locate(find_file), values)
    except DataError as error:
        raise EngineError(f"data {data.name} cannot be used: {error}") from error
