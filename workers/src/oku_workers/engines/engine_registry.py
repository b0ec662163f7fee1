"""Which engine a spec gets. An engine is imported when it is chosen: most runs need no aiohttp."""

from collections.abc import Callable

from oku_core.process.supervision import Supervisor
from oku_core.spec.spec import Engine, Spec
from oku_workers.engines.contract.engine_protocol import EngineContext, EngineProtocol
from oku_workers.feed.feed_protocol import FeedProtocol


def build_engine(
    spec: Spec,
    feed: FeedProtocol,
    supervisor: Supervisor,
    context: EngineContext | None = None,
) -> EngineProtocol:
    """Make the engine that was chosen for the spec.

    Args:
        spec: what to send.
        feed: gives the indices.
        supervisor: keeps the engine's tasks going.
        context: what it needs besides.

    Raises:
        EngineError: the spec cannot be carried out here.
    """
    return _load(spec.chosen_engine)(spec, feed, supervisor, context or EngineContext())


BuildEngine = Callable[[Spec, FeedProtocol, Supervisor, EngineContext], EngineProtocol]


def _load(engine: Engine) -> BuildEngine:
    match engine:
        case Engine.AIOHTTP:
            from oku_workers.engines.aiohttp.engine import AiohttpEngine  # noqa: PLC0415

            return AiohttpEngine
        case Engine.NGHTTP2:
            from oku_workers.engines.nghttp2.engine import Nghttp2Engine  # noqa: PLC0415

            return Nghttp2Engine
        case Engine.PYTHON | Engine.LOCUST:
            from oku_workers.engines.user_code.engine import UserCodeEngine  # noqa: PLC0415

            return UserCodeEngine
        case Engine.HTTPTOOLS:
            from oku_workers.engines.httptools.engine import HttptoolsEngine  # noqa: PLC0415

            return HttptoolsEngine
