import ssl
from pathlib import Path

import pytest

from oku_core.broker.broker_url import split_tls
from oku_core.errors import UserError

PARAMETERS = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile", "ssl_cert_reqs", "ssl_check_hostname")


@pytest.mark.parametrize(
    "url", ["redis://h:6379/0", "redis://:p%40ss@h/0?a=b", "redis+socket:///run/v.sock", "amqp://u:p@h//"]
)
def test_without_tls_a_url_stays_as_it_is(url: str) -> None:
    """Even parameters that other programs use stay."""
    assert split_tls(url) == (url, None)


def test_certificate_and_host_name_are_checked_unless_the_checks_are_turned_off() -> None:
    """The options have the names of each library; py-amqp takes the host name from the URL if it is None."""
    assert split_tls("rediss://h") == (
        "rediss://h", {"ssl_cert_reqs": ssl.CERT_REQUIRED, "ssl_check_hostname": True},
    )  # fmt: skip
    assert split_tls("amqps://h") == ("amqps://h", {"cert_reqs": ssl.CERT_REQUIRED, "server_hostname": None})
    for query in ("ssl_cert_reqs=none", "ssl_cert_reqs=CERT_NONE&ssl_check_hostname=true"):
        assert split_tls(f"rediss://h/0?{query}")[1] == {
            "ssl_cert_reqs": ssl.CERT_NONE, "ssl_check_hostname": False,
        }  # fmt: skip
        assert split_tls(f"amqps://h//?{query}")[1] == {"cert_reqs": ssl.CERT_NONE}
    assert split_tls("amqps://h//?ssl_check_hostname=False")[1] == {"cert_reqs": ssl.CERT_REQUIRED}


def test_files_of_tls_are_taken_out_of_the_url(tmp_path: Path) -> None:
    """The rest of the URL stays."""
    file = tmp_path / "a b.pem"
    file.write_text("x")
    query = f"ssl_ca_certs={file}&ssl_certfile={file}&heartbeat=5&ssl_keyfile={file}"
    url, options = split_tls(f"rediss://:p%2Fw@h:7000/3?{query.replace(' ', '%20')}")
    assert url == "rediss://:p%2Fw@h:7000/3?heartbeat=5"
    assert options is not None
    assert {name: options[name] for name in ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile")} == dict.fromkeys(
        ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile"), str(file)
    )
    _, options = split_tls(f"amqps://h?ssl_ca_certs={str(file).replace(' ', '+')}")
    assert options is not None
    assert options["ca_certs"] == str(file)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        (
            "rediss://h?ssl_ca_certs=/nowhere/ca.pem",
            "ssl_ca_certs: /nowhere/ca.pem: No such file or directory",
        ),
        ("amqps://h?ssl_keyfile=/", "ssl_keyfile: /: Is a directory"),
        ("rediss://h?ssl_cert_reqs=maybe", "ssl_cert_reqs: maybe is not required or none"),
        ("rediss://h?ssl_cert_reqs=", "ssl_cert_reqs: '' is not required or none"),
        ("amqps://h?ssl_check_hostname=1", "ssl_check_hostname: 1 is not true or false"),
        ("rediss://h?ssl_cacerts=x", f"ssl_cacerts is not one of {', '.join(PARAMETERS)}"),
        ("redis://h?ssl_ca_certs=x", "ssl_ca_certs is only for rediss and amqps"),
    ],
)
def test_wrong_tls_parameters_are_refused(url: str, message: str) -> None:
    """The error is one line, before anything is started."""
    with pytest.raises(UserError) as caught:
        split_tls(url)
    assert str(caught.value) == f"--broker-url: {message}"


def test_a_url_that_cannot_be_read_is_refused() -> None:
    """The library would end with a traceback."""
    for url in ["redis://h:port/0", "amqp://[::1/", "rediss://h:99999"]:
        with pytest.raises(UserError, match=r"^--broker-url: [^\n]+$"):
            split_tls(url)
    for url in [
        "redsi://:hunter2@h/0",
        "redis:/:hunter2@h/0",
        "redis//:hunter2@h",
        ":hunter2@h:6379",
        "hunter2",
        "redis://:hunter2/x@h:6379/0",
        "redis://:hunter2?x@h/0",
        "redis://me:hunter2#x@h",
        "amqp://hunter2/x@h/v",
        "amqp://[hunter2@h",
        "redis://:hunter2;x@h:6379/0",
        "rediss://:x@h:hunter2/0",
        "redis://h:0/hunter2",
    ]:
        # A mistyped url is not repeated. Any part of it may be the password, and the error goes into a log.
        with pytest.raises(UserError) as caught:
            split_tls(url)
        assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    "url", ["redis+socket:///run/job@2/v.sock", "redis+socket:///run/c#/v.sock", "redis+socket:///a;b/v.sock"]
)
def test_the_path_of_a_socket_is_to_be_encoded(url: str) -> None:
    """Kombu would connect to another path, and wait for it for ever."""
    with pytest.raises(UserError) as caught:
        split_tls(url)
    assert str(caught.value) == (
        "--broker-url: the path of the socket cannot be read; in it, write % ? # @ ; as %25 %3F %23 %40 %3B"
    )
    encoded = url.replace("@", "%40").replace("#", "%23").replace(";", "%3B")
    assert split_tls(encoded) == (encoded, None)
