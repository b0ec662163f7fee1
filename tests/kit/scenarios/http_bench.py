"""`Http` with a real client and a real session, whose reports a test reads."""

import os
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from oku.host_session import HostSession
from oku.http.http import Http
from oku.http.http_client import HttpClient
from oku.http.scope import Scope, scope_at_work
from oku_core.accounting.outcome import OUTCOMES
from oku_core.data.row_reader import RowReader
from oku_core.http_client.cookies import CookieJar
from oku_core.http_client.tls import SpecTls
from oku_core.spec.files import EVERYWHERE
from oku_core.spec.spec import Engine, Spec
from oku_core.spec.values.url import Url
from oku_core.user_code.messages import FrameReader, FromHost, Hand, Report, frame
from oku_core.user_code.slots import Slots, create_slots


class Counted(NamedTuple):
    """What a session has counted of one request."""

    slot: int
    name: str
    outcome: str
    status: int
    received: int
    reason: str


class HttpBench:
    """Belongs to the running event loop.

    Args:
        base_url: stands before relative URLs; none if it is empty.
        rows: of the run.
        fields: what else the spec says.
    """

    def __init__(self, base_url: str = "", rows: RowReader | None = None, **fields: Any) -> None:
        self.spec = Spec(engine=Engine.PYTHON, base_url=Url(base_url) if base_url else None, **fields)
        self.client = HttpClient(self.spec, SpecTls(self.spec, EVERYWHERE), rows)
        file = create_slots()
        self.slots = Slots(file)
        os.close(file)
        self.session = HostSession(self.slots, 100, is_ahead=False)
        self._reader = FrameReader(FromHost)
        self._texts: list[str] = []
        self._begun = 0

    def begin(
        self, index: int = 7, row: Mapping[str, str] | None = None, user_cookies: CookieJar | None = None
    ) -> Http:
        """Begin an iteration; its code is the one that goes on in this task."""
        self.session.receive(frame(Hand([self._begun, index, 0])))
        self._begun += 1
        self.scope = Scope(self.session, self.session.start_next())
        scope_at_work.set(self.scope)
        return Http(self.client, self.scope, row or {}, user_cookies)

    @property
    def failure(self) -> str:
        """The first request or check of the iteration that failed."""
        assert self.scope.iteration is not None
        return self.scope.iteration.failure

    def read(self) -> list[Counted]:
        """What was counted since the last call."""
        [report] = self._reader.feed(self.session.encode_report(0))
        assert isinstance(report, Report)
        self._texts += report.texts
        cursor = iter(report.requests)
        return [
            Counted(
                slot, self._texts[name], str(OUTCOMES[outcome]), status, received,
                self._texts[reason] if reason >= 0 else "",
            )
            for slot, name, outcome, status, _, received, reason in zip(*[cursor] * 7, strict=True)
        ]  # fmt: skip

    def close(self) -> None:
        """Close every connection."""
        self.client.close()
        self.slots.close()


BuildBench = Callable[..., HttpBench]
