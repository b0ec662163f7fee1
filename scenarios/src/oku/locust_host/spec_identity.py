"""What the spec has said to one origin: it does not go along when that sends a request on to another one.

Both clients of Locust take all headers to any origin but `Authorization` and cookies. What the locustfile
itself has set is its author's, and stays as these clients have it.
"""

import base64
from collections.abc import Iterable, Mapping
from typing import Protocol
from urllib.parse import unquote, urlsplit

from yarl import URL

from oku_core.http_client.redirection import check_other_origin
from oku_core.spec.spec import Spec


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
        credentials: the value of `Authorization` that the base URL stands for; None if it has no user.
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
    def of_spec(cls, spec: Spec, headers: Mapping[str, str]) -> "SpecIdentity":
        """That of a spec with its secrets, and with its headers as they are sent."""
        return cls(headers, _find_credentials(spec), has_certificate=spec.cert is not None)

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
