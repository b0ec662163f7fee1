"""The address of Loki and the credentials for it."""

import base64
import ssl
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import SplitResult, urlsplit, urlunsplit

_API = "/loki/api/v1"


@dataclass(frozen=True, kw_only=True)
class LokiTarget:
    """One Loki and the credentials for it.

    Attributes:
        url: `http(s)://host[:port][/prefix]`; `/loki/api/v1/push` is added unless it ends with `/push`.
        tenant: the tenant of a multi-tenant Loki.
        username: with `password`, for basic authentication.
        token: for bearer authentication.
        ca_file: CA certificates in place of the system's, in PEM.

    Raises:
        ValueError: one of them is wrong; the message is a sentence.
    """

    url: str
    tenant: str = ""
    username: str = ""
    password: str = field(default="", repr=False)
    token: str = field(default="", repr=False)
    ca_file: Path | None = None

    def __post_init__(self) -> None:
        """Check the arguments."""
        if "@" in self.url:  # first, because the other messages contain the URL
            raise ValueError("the URL of Loki contains a user name; pass it and the password separately")
        if not _is_base(self.url):
            raise ValueError(
                f"{self.url!r} is not a URL of Loki such as http://host:3100 or https://host/prefix"
            )
        if self.token and (self.username or self.password):
            raise ValueError("Loki takes either a user name with a password or a token, not both")
        if ":" in self.username:
            raise ValueError("the user name for Loki has a colon, which basic authentication does not allow")
        for name, value in (("tenant", self.tenant), ("token", self.token)):
            if not (value.isascii() and (value + "x").isprintable()):
                raise ValueError(f"the {name} for Loki contains characters other than printable ASCII")
        self.build_tls()

    @property
    def push_url(self) -> str:
        """The URL of the push API."""
        return f"{self._base}/push"

    @property
    def query_url(self) -> str:
        """The URL of the query API."""
        return f"{self._base}/query_range"

    @property
    def _base(self) -> str:
        split = urlsplit(self.url)
        path = split.path.rstrip("/")
        path = path.removesuffix("/push") if path.endswith("/push") else path + _API
        return urlunsplit(SplitResult(split.scheme, split.netloc, path, "", ""))

    def build_headers(self) -> dict[str, str]:
        """Build the headers with the credentials."""
        headers = {}
        if self.tenant:
            headers["X-Scope-OrgID"] = self.tenant
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        elif self.username or self.password:
            pair = base64.b64encode(f"{self.username}:{self.password}".encode()).decode()
            headers["Authorization"] = f"Basic {pair}"
        return headers

    def build_tls(self) -> ssl.SSLContext | bool:
        """TLS verification settings; True means the system's CA bundle."""
        if self.ca_file is None:
            return True
        try:
            return ssl.create_default_context(cafile=self.ca_file)
        except OSError as error:
            raise ValueError(f"{self.ca_file}: contains no readable PEM certificates: {error}") from None


def _is_base(url: str) -> bool:
    try:
        split = urlsplit(url)
        has_port = split.port != 0  # raises if the port is not a number
    except ValueError:
        return False
    is_plain = url.isprintable() and not any(sign in url for sign in " ?#\\")
    return is_plain and has_port and split.scheme in {"http", "https"} and bool(split.hostname)
