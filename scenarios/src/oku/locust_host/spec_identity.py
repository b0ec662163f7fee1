"""What a spec gives to one origin, and another origin does not get when that sends a request on.

Both clients of Locust take all headers to any origin but `Authorization` and cookies. Headers that the
locustfile itself has set stay as these clients have them.
"""

import base64
from collections.abc import Iterable, Mapping
from typing import Protocol
from urllib.parse import unquote, urlsplit

from yarl import URL

from oku_core.http_client.client_rules import check_other_origin
from oku_core.spec.spec import Spec
from oku_core.spec.values.template import read_literally


class Headers(Protocol):
    """The headers of a request, in either client."""

    def items(self) -> Iterable[tuple[str, object]]:
        """Names and values."""
        ...

    def __delitem__(self, name: str, /) -> None:
        """Take a header away."""
        ...


class SpecIdentity:
    """The headers, credentials and certificate of a spec.

    Args:
        headers: those that every request gets.
        credentials: the value of `Authorization` for the user of the base URL; None if it has none.
        has_certificate: whether there is a client certificate.
    """

    def __init__(
        self,
        headers: Mapping[str, str] | None = None,
        credentials: str | None = None,
        *,
        has_certificate: bool = False,
    ) -> None:
        self._values = {(name.lower(), value) for name, value in (headers or {}).items()}
        if credentials is not None:
            self._values.add(("authorization", credentials))
        self._has_certificate = has_certificate

    @classmethod
    def of_spec(cls, spec: Spec) -> "SpecIdentity":
        """That of a spec with its secrets."""
        return cls(build_headers(spec), _find_credentials(spec), has_certificate=spec.cert is not None)

    def check(self, asked: URL, following: URL, *, has_certificate: bool = True) -> None:
        """Check that a request may go on: another origin could ask for the certificate.

        Args:
            asked: the URL that sends it on.
            following: where it goes.
            has_certificate: whether the certificate that it would show is that of the spec.

        Raises:
            RedirectError: it may not.
        """
        if following.origin() != asked.origin():
            has_certificate = has_certificate and self._has_certificate
            check_other_origin(following, has_body=False, has_certificate=has_certificate)

    def take_out(self, headers: Headers, asked: str, following: str) -> None:
        """Take what the spec has said out of a request that goes on to another origin."""
        if not _is_same_origin(asked, following):
            names = {name.lower() for name, value in headers.items() if (name.lower(), value) in self._values}
            for name in names:
                del headers[name]


def build_headers(spec: Spec) -> dict[str, str]:
    """The headers that a spec gives to every request, as they are sent."""
    return {header.name: read_literally(header.value) for header in spec.headers}


def _is_same_origin(asked: str, following: str) -> bool:
    try:
        return URL(following).origin() == URL(asked).origin()
    except ValueError:  # of what has no origin, such as mailto
        return False


def _find_credentials(spec: Spec) -> str | None:
    """What Locust makes of a user and a password in the base URL."""
    if spec.base_url is None:
        return None
    parts = urlsplit(str(spec.base_url))
    if not parts.username or not parts.password:
        return None
    text = f"{unquote(parts.username)}:{unquote(parts.password)}"
    return f"Basic {base64.b64encode(text.encode('latin-1')).decode()}"
