"""What people are shown of the request of an index: its target, its method and its URL, without secrets."""

from typing import NamedTuple

from oku_core.process.redaction import redact
from oku_core.spec.request_template import RequestMix
from oku_core.spec.spec import Spec
from oku_core.spec.values.placeholder import INDEX_PLACEHOLDER


class RequestLine(NamedTuple):
    """A request, as a table shows it; the URL is empty if it goes to Oku's own delay servers."""

    target: str
    method: str
    url: str

    @property
    def text(self) -> str:
        """Method and URL."""
        return f"{self.method} {self.url}".rstrip()


class RequestLines:
    """Says of each index of a spec what its request is."""

    def __init__(self, spec: Spec) -> None:
        self._mix = RequestMix(spec) if spec.list_places() else None
        self._method = spec.method

    def build(self, index: int) -> RequestLine:
        """The request of an index; its user, password and query are masked where they may be secret."""
        if self._mix is None:
            return RequestLine("", self._method, "")
        template = self._mix.find(index)
        url = redact(template.url.replace(INDEX_PLACEHOLDER, str(index)), queries=False)
        return RequestLine(template.name, template.method, url)
