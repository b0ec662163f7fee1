"""Which engine a spec gets.

This loads every engine, and aiohttp with one of them.
"""

from collections.abc import Callable, Mapping

from oku_core.process.supervision import Supervisor
from oku_core.spec.spec import Engine, Spec
from oku_workers.engines.aiohttp.engine import AiohttpEngine
from oku_workers.engines.contract.engine_protocol import EngineContext, EngineProtocol
from oku_workers.engines.httptools.engine import HttptoolsEngine
from oku_workers.engines.nghttp2.engine import Nghttp2Engine
from oku_workers.engines.user_code.engine import UserCodeEngine
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
    return _ENGINES[spec.chosen_engine](spec, feed, supervisor, context or EngineContext())


BuildEngine = Callable[[Spec, FeedProtocol, Supervisor, EngineContext], EngineProtocol]
_ENGINES: Mapping[Engine, BuildEngine] = {
    Engine.AIOHTTP: AiohttpEngine,
    Engine.HTTPTOOLS: HttptoolsEngine,
    Engine.NGHTTP2: Nghttp2Engine,
    Engine.PYTHON: UserCodeEngine,
    Engine.LOCUST: UserCodeEngine,
}
