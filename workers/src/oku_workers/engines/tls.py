"""How the engines speak TLS: certificates are checked unless the spec says otherwise."""

import ssl

from oku_core.spec import Spec
from oku_workers.engines.error import EngineError


def build_tls(spec: Spec) -> ssl.SSLContext | None:
    """The settings for connections to https targets; None when nothing of the spec can come to speak TLS.

    The system's certificates take 2 MB, so they are not loaded for nothing.

    Raises:
        EngineError: a file that the spec names cannot be read here, or is not what it should be.
    """
    asks_https = any(url.lower().startswith("https:") for url in spec.urls)
    if not (asks_https or spec.cacert or spec.cert or spec.max_redirects):
        return None
    try:
        context = ssl.create_default_context(cafile=spec.cacert)
    except (OSError, ValueError) as error:
        raise EngineError(
            f"cacert {spec.cacert} cannot be used: {_explain(error, 'it holds no certificate in PEM')}"
        ) from error
    if spec.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if spec.cert is not None:
        try:
            # A key that wants a passphrase must not ask the terminal for it.
            context.load_cert_chain(spec.cert, spec.key, password="")
        except (OSError, ValueError) as error:
            files = spec.cert if spec.key is None else f"{spec.cert} with the key {spec.key}"
            reason = _explain(error, "that is no certificate and its key in PEM, without a passphrase")
            raise EngineError(f"cert {files} cannot be used: {reason}") from error
    return context


def _explain(error: Exception, malformed: str) -> str:
    if isinstance(error, OSError) and not isinstance(error, ssl.SSLError):
        return error.strerror or str(error)
    return malformed
