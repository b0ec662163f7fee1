"""What people are shown of the request of an index: its target, its method and its URL, without secrets."""

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from oku_core.data.escape import AS_TEXT, IN_URL
from oku_core.data.row_values import RowValues
from oku_core.process.redaction import MASK, redact
from oku_core.spec.request_template import RequestMix, RequestTemplate
from oku_core.spec.spec import Spec
from oku_core.spec.values.template import Template

_PLACEHOLDER = re.compile(r"(\{(?!literal:)[^{}]*\})")


class RequestLine(NamedTuple):
    """A request, as a table shows it; the URL is empty if it goes to Oku's own delay servers.

    Of an iteration of user code nothing is said: nobody knows what it asks.
    """

    target: str
    method: str
    url: str

    @property
    def text(self) -> str:
        """Method and URL."""
        return f"{self.method} {self.url}".rstrip()


class RequestLines:
    """Says of each index of a spec what its request is.

    Args:
        spec: of the run.
        hides_queries: whether what stands in queries is masked, but for placeholders.
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
