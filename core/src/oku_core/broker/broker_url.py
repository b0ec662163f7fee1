"""The URL of a broker, and the TLS that it asks for.

By default, kombu verifies neither the certificate of a `rediss://` broker nor the host name of an `amqps://`
broker, and it reads TLS parameters from the URL for Redis only. Oku verifies both, and takes the same
parameters for both.
"""

import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, parse_qsl, urlencode, urlsplit

from oku_core.errors import UserError, format_value

_SOCKET_SCHEME = "redis+socket"
_SCHEMES = ("redis", "rediss", _SOCKET_SCHEME, "amqp", "amqps")
_TEST_SCHEME = "memory"
"""kombu's broker within one process, for unit tests."""
_TLS_SCHEMES = ("rediss", "amqps")
_PREFIX = "ssl_"
_FILES = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile")
_CHECKS = {
    "ssl_cert_reqs": {"required": True, "none": False},
    "ssl_check_hostname": {"true": True, "false": False},
}


def split_tls(url: str) -> tuple[str, dict[str, Any] | None]:
    """Split a URL into the URL without its TLS parameters and kombu's TLS options, None without TLS.

    `ssl_ca_certs` (a private certificate authority), `ssl_certfile` and `ssl_keyfile` (both of the client)
    name PEM files; `ssl_cert_reqs=none` and `ssl_check_hostname=false` each turn a check off.

    Raises:
        UserError: the URL does not name a supported broker, or a TLS parameter is unknown, has a value that
            is not allowed, or names a file that cannot be read.
    """
    parts = _read_parts(url)
    query = parse_qsl(parts.query, keep_blank_values=True)
    given = {name: value for name, value in query if name.startswith(_PREFIX)}
    if given:
        others = [(name, value) for name, value in query if name not in given]
        url = parts._replace(query=urlencode(others)).geturl()
    if parts.scheme not in _TLS_SCHEMES:
        if given:
            raise UserError(f"--broker-url: {next(iter(given))} is only for {' and '.join(_TLS_SCHEMES)}")
        return url, None
    build = _build_redis_options if parts.scheme == "rediss" else _build_amqp_options
    return url, build(_read_files(given), **_read_checks(given))


def _read_parts(url: str) -> SplitResult:
    scheme, separator, rest = url.partition("://")
    if not separator or scheme not in (*_SCHEMES, _TEST_SCHEME) or not (rest or scheme == _TEST_SCHEME):
        # It is unclear which part is the password, so the message shows none of them.
        raise UserError(f"--broker-url: the URL must begin with one of {', '.join(_SCHEMES)}, and ://")
    try:
        parts = urlsplit(url)
        is_readable = _is_readable(parts)
    except ValueError:
        is_readable = False
    if is_readable:
        return parts
    if scheme == _SOCKET_SCHEME:
        raise UserError(
            "--broker-url: the path of the socket cannot be read; in it, "
            "write % ? # @ ; as %25 %3F %23 %40 %3B"
        )
    raise UserError(
        "--broker-url: host and port cannot be read; in a password, "
        "write : / ? # @ ; as %3A %2F %3F %23 %40 %3B"
    )


def _is_readable(parts: SplitResult) -> bool:
    """Whether kombu reads a URL as its user meant it; it splits lists of URLs at semicolons.

    Raises:
        ValueError: host or port cannot be read.
    """
    has_port = parts.port is None or parts.port > 0
    has_host = "@" in parts.netloc or "@" not in parts.path + parts.fragment
    has_path = parts.scheme != _SOCKET_SCHEME or not parts.fragment
    return has_port and has_host and has_path and ";" not in parts.netloc + parts.path


def _read_files(given: Mapping[str, str]) -> dict[str, str]:
    for name in given.keys() - {*_FILES, *_CHECKS}:
        raise UserError(f"--broker-url: {name} is not one of {', '.join((*_FILES, *_CHECKS))}")
    files = {name: given[name] for name in _FILES if name in given}
    for name, path in files.items():
        try:
            Path(path).read_bytes()
        except OSError as error:
            raise UserError(f"--broker-url: {name}: {format_value(path)}: {error.strerror}") from error
    return files


def _read_checks(given: Mapping[str, str]) -> dict[str, bool]:
    checks = {}
    for name, values in _CHECKS.items():
        value = given.get(name, next(iter(values))).lower().removeprefix("cert_")
        if value not in values:
            raise UserError(f"--broker-url: {name}: {format_value(given[name])} is not {' or '.join(values)}")
        checks[name] = values[value]
    return checks


def _build_redis_options(
    files: Mapping[str, str], *, ssl_cert_reqs: bool, ssl_check_hostname: bool
) -> dict[str, Any]:
    checks = ssl.CERT_REQUIRED if ssl_cert_reqs else ssl.CERT_NONE
    return {**files, "ssl_cert_reqs": checks, "ssl_check_hostname": ssl_cert_reqs and ssl_check_hostname}


def _build_amqp_options(
    files: Mapping[str, str], *, ssl_cert_reqs: bool, ssl_check_hostname: bool
) -> dict[str, Any]:
    options: dict[str, Any] = {name.removeprefix(_PREFIX): path for name, path in files.items()}
    options["cert_reqs"] = ssl.CERT_REQUIRED if ssl_cert_reqs else ssl.CERT_NONE
    if ssl_cert_reqs and ssl_check_hostname:
        options["server_hostname"] = None  # py-amqp then takes the host of the URL
    return options
