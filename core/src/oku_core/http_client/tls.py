"""How requests speak TLS: certificates are checked unless the spec says otherwise."""

import ssl
from pathlib import Path
from tempfile import TemporaryDirectory

from oku_core.errors import UserError
from oku_core.spec.files import SpecFileError, SpecFiles
from oku_core.spec.spec import Engine, Spec
from oku_core.spec.values.file_reference import describe_file

_PEM = b"-----BEGIN "


class TlsError(UserError):
    """A file that the spec names for TLS cannot be used here; the message is one line for the user."""


def may_speak_tls(spec: Spec) -> bool:
    """Whether anything of the spec can come to speak TLS; a file that is named is looked at in any case.

    User code may ask for any URL.
    """
    asks_https = spec.runs_user_code or any(url.scheme == "https" for url in spec.list_places())
    return bool(asks_https or spec.cacert or spec.cert or spec.max_redirects)


def server_name(host: str) -> str:
    """The name that TLS asks a server for, and that its certificate must be for.

    Without the dot at the end that a name in DNS may have (RFC 6066, section 3).
    """
    return host.rstrip(".")


def build_tls(spec: Spec, files: SpecFiles) -> ssl.SSLContext | None:
    """The settings for connections to https targets; None when nothing of the spec can come to speak TLS.

    The system's certificates take 2 MB, so they are not loaded for nothing. Reading files may block.

    Raises:
        TlsError: a file that the spec names cannot be read here, or is not what it should be.
    """
    if not may_speak_tls(spec):
        return None
    context = _build_context(spec, files)
    # A new handshake within a connection costs as much as the first; no honest server asks for it.
    context.options |= ssl.OP_NO_RENEGOTIATION
    if spec.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if spec.engine is Engine.NGHTTP2:
        context.set_alpn_protocols(["h2"])
    if spec.cert is not None:
        _load_certificate(context, spec.cert, spec.key, files)
    return context


class SpecTls:
    """The settings of TLS of a spec, built when they are first needed.

    Args:
        spec: may speak TLS.
        files: those that it names.
    """

    def __init__(self, spec: Spec, files: SpecFiles) -> None:
        self._spec, self._files = spec, files
        self._settings: ssl.SSLContext | None = None

    def build(self) -> ssl.SSLContext:
        """Build the settings at the first call; `TlsError` as for `build_tls`."""
        if self._settings is None:
            self._settings = build_tls(self._spec, self._files)
            assert self._settings is not None
        return self._settings


def _build_context(spec: Spec, files: SpecFiles) -> ssl.SSLContext:
    if spec.cacert is None:
        return ssl.create_default_context()
    place = f"cacert {describe_file(spec.cacert)}"
    content = _read(place, spec.cacert, files)
    try:
        if _PEM not in content:
            raise ValueError("no PEM")
        # Certificates are ASCII; what people write between them need not be.
        return ssl.create_default_context(cadata=content.decode("ascii", "ignore"))
    except (ssl.SSLError, ValueError) as error:
        raise TlsError(f"{place} cannot be used: it contains no certificate in PEM format") from error


def _load_certificate(context: ssl.SSLContext, cert: str, key: str | None, files: SpecFiles) -> None:
    place = f"cert {describe_file(cert)}"
    if key is not None:
        place += f" with the key {describe_file(key)}"
    contents = [_read(place, path, files) for path in (cert, key) if path is not None]
    try:
        # OpenSSL reads files only. It gets copies: what is at a path may have changed since it was checked.
        with TemporaryDirectory(prefix="oku-") as folder:
            copies = [Path(folder, str(number)) for number, _ in enumerate(contents)]
            for copy, content in zip(copies, contents, strict=True):
                copy.write_bytes(content)
            # A key that wants a passphrase must not ask the terminal for it.
            context.load_cert_chain(copies[0], copies[-1], password="")
    except (ssl.SSLError, ValueError) as error:
        reason = "it is not a certificate with its key in PEM format, without a passphrase"
        raise TlsError(f"{place} cannot be used: {reason}") from error
    except OSError as error:
        raise TlsError(f"{place} cannot be used: it cannot be copied: {error.strerror}") from error


def _read(place: str, path: str, files: SpecFiles) -> bytes:
    try:
        return files.read(path)
    except SpecFileError as error:
        raise TlsError(f"{place} cannot be used: {error}") from error
