import re
import ssl
from collections.abc import Callable
from typing import Any

import pytest
from tests.kit.servers.certificates import Certificates

from oku_core.http_client.tls import TlsError, build_tls, server_name
from oku_core.spec.files import EVERYWHERE
from oku_core.spec.spec import Spec
from oku_core.spec.values.url import Url

URLS = (Url("https://h/"),)


def build(**fields: Any) -> ssl.SSLContext:
    """The settings for an https target."""
    context = build_tls(Spec(**({"urls": URLS} | fields)), EVERYWHERE)
    assert context is not None
    return context


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """Made once: keys take their time."""
    return Certificates(tmp_path_factory.mktemp("certificates"))


def test_a_server_is_asked_for_by_its_name_without_the_dot_at_its_end() -> None:
    """Certificates have none (RFC 6066, section 3)."""
    names = {"a.example.": "a.example", "a.example": "a.example", "::1": "::1"}
    assert {host: server_name(host) for host in names} == names


def test_certificates_are_checked() -> None:
    """They must be signed by an authority of the system, and be for the name."""
    context = build()
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)


def test_the_authorities_of_the_spec_stand_in_the_place_of_the_system_s(files: Certificates) -> None:
    """Those who trust a service of their own need not trust the world."""
    context = build(cacert=files.cacert)
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
    assert context.cert_store_stats()["x509_ca"] == 1


def test_nobody_may_begin_a_handshake_anew() -> None:
    """It would cost a worker more than the server that asks for it."""
    for fields in ({}, {"insecure": True}):
        assert build(**fields).options & ssl.OP_NO_RENEGOTIATION


def test_insecure_takes_any_certificate(files: Certificates) -> None:
    """It does so whatever else the spec says."""
    for cacert in (None, files.cacert):
        context = build(insecure=True, cacert=cacert)
        assert (context.verify_mode, context.check_hostname) == (ssl.CERT_NONE, False)


BAD_FILES: dict[str, Callable[[Certificates], dict[str, Any]]] = {
    "no cacert": lambda files: {"cacert": files.missing},
    "cacert is a folder": lambda files: {"cacert": str(files.folder)},
    "cacert is no PEM": lambda files: {"cacert": files.nonsense},
    "cacert is a key": lambda files: {"cacert": files.key},
    "no cert": lambda files: {"cert": files.missing, "key": files.key},
    "cert is no PEM": lambda files: {"cert": files.nonsense, "key": files.key},
    "cert without a key": lambda files: {"cert": files.cert},
    "no key": lambda files: {"cert": files.cert, "key": files.missing},
    "key is no PEM": lambda files: {"cert": files.cert, "key": files.nonsense},
    "key of another": lambda files: {"cert": files.cert, "key": files.other_key},
    "key behind a passphrase": lambda files: {"cert": files.cert, "key": files.lock_key()},
}


@pytest.mark.parametrize("urls", [("http://h/", "HTTPS://h/"), ("https://h/{i}",)])
def test_one_https_target_is_enough(urls: tuple[str, ...]) -> None:
    """It may stand among others, and be spelt in any case."""
    assert build(urls=tuple(map(Url, urls))).check_hostname


def test_what_comes_to_speak_no_tls_has_no_settings() -> None:
    """The certificates of the system are not loaded for nothing; a redirection may lead to https."""
    urls = ("http://https/https:",)
    assert build_tls(Spec(urls=tuple(map(Url, urls))), EVERYWHERE) is None
    assert build(urls=tuple(map(Url, urls)), max_redirects=1).check_hostname


@pytest.mark.parametrize("case", BAD_FILES)
def test_a_file_that_cannot_be_used(files: Certificates, case: str) -> None:
    """One line names it, and nobody is asked for a passphrase."""
    fields = BAD_FILES[case](files)

    with pytest.raises(TlsError) as caught:
        build_tls(Spec(urls=(Url("http://h/"),), **fields), EVERYWHERE)

    message = str(caught.value)
    assert message.isprintable()
    assert re.match(r"(cacert|cert) \S+ (with the key \S+ )?cannot be used: \S", message)
    assert all(path in message for path in fields.values())
