"""What the aiohttp engine makes of a request template: what to send, and how to judge the answers."""

from collections.abc import Sequence

from oku_core.spec.request_template import RequestMix, RequestTemplate
from oku_core.spec.spec import Spec
from oku_core.spec.values.template import Rows
from oku_workers.engines.aiohttp.request import build_arguments, build_url
from oku_workers.engines.aiohttp.sender import needs_sender
from oku_workers.engines.http.answer_checks import build_judge


class Route:
    """One kind of request.

    Args:
        template: what the requests are.
        spec: that it belongs to.
        is_only: whether the spec has no other kind.
        rows: the rows of the run, if it has data that its requests use.

    Attributes:
        method: of the requests.
        build_url: makes the URL of request `i`.
        build_arguments: makes what else aiohttp is told of request `i`; None if that is nothing.
        answers: judges the answers.
    """

    __slots__ = ("answers", "build_arguments", "build_url", "method")

    def __init__(
        self, template: RequestTemplate, spec: Spec, *, is_only: bool, rows: Rows | None = None
    ) -> None:
        self.method = template.method
        self.build_url = build_url(template.url, template.columns, rows)
        self.build_arguments = build_arguments(template, rows, is_only=is_only, has_sender=needs_sender(spec))
        self.answers = build_judge(template.expect, spec.timeout_s)


def build_routes(spec: Spec, mix: RequestMix, rows: Rows | None = None) -> Sequence[Route]:
    """The routes of a spec: index `i` takes the one at `i` modulo how many there are."""
    is_only = len(mix.templates) == 1
    routes = [Route(template, spec, is_only=is_only, rows=rows) for template in mix.templates]
    return [routes[place] for place in mix.turns]
