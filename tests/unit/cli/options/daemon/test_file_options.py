import pytest

from oku_cli.options.daemon.file_options import parse_host_port


def test_an_address_is_a_host_with_or_without_a_port() -> None:
    """IPv6 has brackets."""
    for text, host, port in [
        ("oku-clock", "oku-clock", None),
        ("oku-clock.oku.svc:8700", "oku-clock.oku.svc", 8700),
        ("10.0.0.7:1", "10.0.0.7", 1),
        ("[fe80::1]", "fe80::1", None),
        ("[fe80::1]:65535", "fe80::1", 65535),
    ]:
        assert parse_host_port(text) == (host, port)
    for text in [
        "",
        ":8700",
        "a:",
        "a:0",
        "a:65536",
        "a b",
        "a@b",
        "http://a",
        "fe80::1",
        "[fe80::1",
        "a:8700/",
    ]:
        # Anything else is refused. In a line that says what is allowed.
        with pytest.raises(ValueError, match="is not HOST or HOST:PORT"):
            parse_host_port(text)
