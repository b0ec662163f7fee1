"""The kinds of requests of a spec, and where they go; engines that read from sockets themselves share it."""

import logging
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from yarl import URL

from oku_core.http_client.request_head import build_origin
from oku_core.spec.request_template import RequestMix, RequestTemplate
from oku_core.spec.spec import Spec

AnyRoute = TypeVar("AnyRoute")
AnyOrigin = TypeVar("AnyOrigin")

_log = logging.getLogger(__name__)


class Routes(Generic[AnyRoute, AnyOrigin]):
    """The routes of a spec, and which of them each index takes.

    Args:
        spec: what to send.
        build: from a template and where its requests go, makes a function from an origin to the route;
            `ValueError` when the requests cannot be written down.
        build_unsendable: makes the route of a template whose requests cannot be sent.
        connect: makes an origin of scheme, host and port.

    Attributes:
        all: one for each template of the spec.
        turns: index `i` takes `turns[i % len(turns)]`.
        origins: where they go, each one once.
    """

    def __init__(
        self,
        spec: Spec,
        build: Callable[[RequestTemplate, URL], Callable[[AnyOrigin], AnyRoute]],
        build_unsendable: Callable[[RequestTemplate], AnyRoute],
        connect: Callable[[URL], AnyOrigin],
    ) -> None:
        origins: dict[URL, AnyOrigin] = {}

        def build_one(template: RequestTemplate) -> AnyRoute:
            try:
                url = build_origin(template.url)
                build_route = build(template, url)
            except ValueError as error:
                _log.warning("requests to %s cannot be sent: %s", template.url, error)
                return build_unsendable(template)
            place = url.with_user(None)
            if place not in origins:
                origins[place] = connect(place)
            return build_route(origins[place])

        mix = RequestMix(spec)
        self.all = [build_one(template) for template in mix.templates]
        self.turns: Sequence[AnyRoute] = [self.all[place] for place in mix.turns]
        self.origins = list(origins.values())
