"""One request of a scenario: builds it, sends it, follows redirections and keeps cookies."""

from collections.abc import Mapping
from time import time

from yarl import URL

from oku.http.call import RequestOptions
from oku.http.http_client import MOST_KEPT_BYTES, Answer, HttpClient
from oku.http.request_body import Body, encode_data, encode_fields, encode_files, encode_json
from oku.http.request_plan import RequestPlan, check_value
from oku_core.accounting.outcome import PROTOCOL_ERROR
from oku_core.http_client.cookies import CookieJar, add_cookies, may_set_cookies
from oku_core.http_client.http1_connection import TransportError
from oku_core.http_client.redirects import NOT_A_URL, REDIRECTIONS, Hop, RedirectChain, RedirectError
from oku_core.http_client.request_head import METHODS_WITHOUT_BODY, build_basic
from oku_core.spec.values.request_content import FRAMING, Header, asks_to_close, find_framing_fault

MOST_REDIRECTS = 10
_Headers = list[tuple[str, str]]
_NO_HEADERS: _Headers = []
_NO_LENGTH = [("Content-Length", "0")]
_NO_ROW: Mapping[str, str] = {}


class OutgoingRequest:
    """A request that is sent.

    Args:
        client: has the connections.
        plan: of its method and URL.
        options: as the scenario has given them.
        index: of its iteration; None outside of iterations.
        row: of its iteration.

    Raises:
        ValueError: it cannot be sent.
    """

    __slots__ = (
        "_body", "_client", "_headers", "_index", "_is_last", "_kept_bytes", "_options", "_plan", "_query",
        "_row", "_url",
    )  # fmt: skip

    def __init__(
        self,
        client: HttpClient,
        plan: RequestPlan,
        options: RequestOptions,
        index: int | None,
        row: Mapping[str, str],
    ) -> None:
        self._client = client
        self._plan = plan
        self._options = options
        self._index = index
        self._row = row
        self._url = ""
        self._query, self._body = "", b""
        self._kept_bytes = MOST_KEPT_BYTES
        self._is_last = False
        self._headers = _NO_HEADERS if plan.method in METHODS_WITHOUT_BODY else _NO_LENGTH
        if options:
            self._take_options(options)

    @property
    def url(self) -> str:
        """The URL with its placeholders filled in; after redirections, the last one."""
        if not self._url:
            self._url = self._plan.build_url(self._index, self._row, self._query)
        return self._url

    async def send(self, deadline_ns: int, cookies: CookieJar) -> Answer:
        """Send it, follow redirections, and keep cookies; the last answer.

        Args:
            deadline_ns: until when it may take, by the monotonic clock.
            cookies: the cookies of its iteration.

        Raises:
            TransportError: there is no complete answer.
            ValueError: its URL has a placeholder that stands for nothing here.
        """
        client, plan, own, is_foreign = self._client, self._plan, self._headers, False
        body: bytes | None = self._body
        line, chain = plan.line, None
        if line is None or self._query:
            line = plan.build_line(self._index, self._row, self._query)
        while True:
            headers = own if cookies.is_empty else self._add_cookies(own, cookies, is_foreign=is_foreign)
            head = client.build_head(plan, line, headers, self._index, is_foreign=is_foreign)
            answer = await client.exchange(
                plan.origin,
                head + body if body else head,
                deadline_ns,
                has_body=plan.method != "HEAD",
                kept_bytes=self._kept_bytes,
                is_last=self._is_last and not is_foreign,
            )
            if may_set_cookies(answer.head):
                cookies.store(answer.head, self.url, time())
            if answer.status not in REDIRECTIONS or self._options.get("allow_redirects") not in (None, True):
                return answer
            if chain is None:
                hop = Hop(plan.method, URL(self.url, encoded=True), has_body=bool(body))
                has_certificate = client.spec.cert is not None
                chain = RedirectChain(hop, own, body, MOST_REDIRECTS, has_certificate=has_certificate)
            if (following := self._follow(chain, answer)) is None:
                return answer
            plan, own, body, is_foreign = following, chain.headers, chain.body, chain.hop.is_foreign
            line = plan.build_line(None, _NO_ROW)

    def _follow(self, chain: RedirectChain[bytes], answer: Answer) -> RequestPlan | None:
        """The plan of the redirected request; None after the last answer; `TransportError` if it fails."""
        try:
            if not chain.follow(answer.status, answer.head):
                return None
            self._url = str(chain.hop.url)
            return self._client.find_plan(chain.hop.method, self._url)
        except RedirectError as error:
            raise TransportError(PROTOCOL_ERROR, error) from None
        except ValueError:
            raise TransportError(PROTOCOL_ERROR, NOT_A_URL) from None

    def _take_options(self, options: RequestOptions) -> None:
        """Work out query, headers and body."""
        own: _Headers = []
        body = _encode_body(options)
        if (token := options.get("bearer")) is not None:
            own.append(("Authorization", f"Bearer {check_value('Authorization', token)}"))
        elif (auth := options.get("auth")) is not None:
            own.append(("Authorization", build_basic(*auth)))
        if body is not None:
            self._body = body.content
            own.append(("Content-Type", body.type))
        for key, value in (options.get("headers") or _NO_ROW).items():
            own = [pair for pair in own if pair[0].lower() != key.lower()]
            if value is None:
                continue
            header = key, check_value(key, value)
            if key.lower() not in FRAMING or self._takes_framing(*header):
                own.append(header)
        if body is not None or self._headers:
            own.append(("Content-Length", str(len(self._body))))
        self._headers = own
        if params := options.get("params"):
            self._query = encode_fields(params)
        if options.get("discard_body"):
            self._kept_bytes = 0

    def _takes_framing(self, name: str, value: str) -> bool:
        """Whether to send a header that frames the request or manages its connection.

        Raises:
            ValueError: the target would take a part of this request for another one.
        """
        if name.lower() == "content-length":
            if value.strip() != str(len(self._body)):
                raise ValueError(f"Content-Length: {value}: the body has {len(self._body)} bytes")
            return False
        header = Header(f"{name}: {value}")
        if fault := find_framing_fault((header,), None):
            raise ValueError(fault)
        self._is_last = asks_to_close((header,))
        return True

    def _add_cookies(self, own: _Headers, cookies: CookieJar, *, is_foreign: bool) -> _Headers:
        """Headers with the cookies that servers have set, in addition to a given `Cookie` header."""
        common = "" if is_foreign else self._client.find_header("cookie", self._index)
        return add_cookies(own, cookies.find(self.url, time()), common)


def _encode_body(options: RequestOptions) -> Body | None:
    """The body of a request; None if it has none."""
    if "json" in options:
        return encode_json(options["json"])
    data = options.get("data")
    if (files := options.get("files")) is not None:
        if isinstance(data, str | bytes):
            raise TypeError("data beside files are the fields of a form, not text or bytes")
        return encode_files(files, data or ())
    return None if data is None else encode_data(data)
