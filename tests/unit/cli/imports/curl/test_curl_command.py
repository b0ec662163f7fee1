import pytest

from oku_cli.imports.curl.curl_command import read_curl
from oku_cli.imports.imported_spec import ImportedRequest


def read(command: str) -> ImportedRequest:
    """Read the only request of a command; every file holds two lines."""
    (request,) = read_curl(command, lambda name: f"{name}\nsecond\n").requests
    return request


@pytest.mark.parametrize(
    ("flags", "method", "body"),
    [
        ("", "GET", None),
        ("-X DELETE", "DELETE", None),
        ("-I", "HEAD", None),
        ("-d a=1 -d b=2", "POST", "a=1&b=2"),
        ("-X PUT -d x", "PUT", "x"),
        ("-d @f", "POST", "fsecond"),
        ("--data-binary @f", "POST", "f\nsecond\n"),
        ("--data-raw @f", "POST", "@f"),
        ("--data-urlencode 'n=a b&c'", "POST", "n=a+b%26c"),
        ("--data-urlencode n@f", "POST", "n=f%0Asecond%0A"),
        ("--data-urlencode =a/b --data-urlencode 'c d'", "POST", "a%2Fb&c+d"),
        ("""--json '{"a":' --json '1}'""", "POST", '{"a":1}'),
    ],
)
def test_method_and_body_are_those_of_curl(flags: str, method: str, body: str | None) -> None:
    """Data makes a POST, in the form that each flag gives it."""
    request = read(f"curl http://h/ {flags}")
    assert (request.method, request.body) == (method, body)


@pytest.mark.parametrize(
    ("flags", "headers"),
    [
        ("-d x", {"Content-Type": "application/x-www-form-urlencoded"}),
        ("-d x -H 'content-type: text/plain'", {"content-type": "text/plain"}),
        ("-d x -H Content-Type:", {}),
        ("-H 'X-A;'", {"X-A": ""}),
        ("--json {}", {"Content-Type": "application/json", "Accept": "application/json"}),
        ("-A me -e http://r/ -r 0-9", {"User-Agent": "me", "Referer": "http://r/", "Range": "bytes=0-9"}),
        ("-e 'http://r/;auto'", {"Referer": "http://r/"}),
        ("-e ';auto'", {}),
        ("-u joe:pw", {"Authorization": "Basic am9lOnB3"}),
        ("-u name", {"Authorization": "Basic bmFtZTo="}),
        ("-u :", {"Authorization": "Basic Og=="}),
        ("--oauth2-bearer t", {"Authorization": "Bearer t"}),
        ("-b 'a=1; b=2'", {"Cookie": "a=1; b=2"}),
        ("-b a=1 -b 'b=2; c=3' -b ''", {"Cookie": "a=1; b=2; c=3"}),
        ("-b a=1 -H 'cookie: b=2'", {"cookie": "b=2"}),
        ("--compressed", {"Accept-Encoding": "gzip, deflate"}),
        ("-H 'Content-Length: 3' -H 'Connection: close'", {}),
        ("-H 'Host: x.example'", {"Host": "x.example"}),
        ("-H Host:", {}),
    ],
)
def test_headers_are_those_of_curl(flags: str, headers: dict[str, str]) -> None:
    """But for those that an engine sets."""
    assert dict(read(f"curl http://h/ {flags}").headers) == headers


def test_urls_are_completed() -> None:
    """`-G` puts data into the query, and a fragment is never sent."""
    assert read("curl h/a#b").url == "http://h/a"
    assert read("curl 'h/login?next=http://a'").url == "http://h/login?next=http://a"
    assert read("curl -G 'h/?a=1' -d b=2 -d c=3").url == "http://h/?a=1&b=2&c=3"
    assert read("curl h --url-query 'a=1 2' --url-query +b=%3d").url == "http://h?a=1+2&b=%3d"
    assert read("curl 'h/?a' --url-query n@f -d x").url == "http://h/?a&n=f%0Asecond%0A"
    assert read("curl -g 'http://h/{a,b}[1-2]'").url == "http://h/{a,b}[1-2]"
    assert read("curl 'http://[::1]/?q=/../'").url == "http://[::1]/?q=/../"
    assert read("curl --path-as-is http://h/a/../b").url == "http://h/a/../b"
    imported = read_curl("curl http://a/ --url http://b/", str)
    assert [request.url for request in imported.requests] == ["http://a/", "http://b/"]


def test_a_certificate_has_no_password() -> None:
    """It is never written into a spec; a colon of a name has a backslash before it."""
    cases = {"c.pem": "c.pem", "c.pem:": "c.pem", r"a\:b.pem": "a:b.pem", r"a\b": r"a\b", "a\\": "a\\"}
    read_names = {name: read_curl(f"curl -E '{name}' h", str).settings["cert"] for name in cases}
    assert read_names == cases
    for name in ("c.pem:secret", ":secret", r"c\\:secret"):
        with pytest.raises(ValueError, match="there is a password behind the colon") as raised:
            read_curl(f"curl --cert '{name}' h", str)
        assert "secret" not in str(raised.value)


def test_settings_become_keys_of_the_spec() -> None:
    """Flags about the answer alone are named as ignored, and so is `--no-keepalive`, a matter of TCP; a
    time of zero is no limit.
    """
    imported = read_curl("curl -kL -m 2.5 -x p:3128 --cacert c.pem -H 'connection: Close' -o f -s h", str)
    assert imported.settings == {
        "cacert": "c.pem", "timeout": "2.5s", "proxy": "http://p:3128", "insecure": True, "keepalive": False,
        "max-redirects": 50,
    }  # fmt: skip
    assert imported.notes == ["Ignored, as it does not change what is sent: --output, --silent."]
    assert [read_curl(f"curl -m {time} h", str).settings for time in ("0", "0.0")] == [{}, {}]
    imported = read_curl("curl --no-keepalive -H 'Connection: keep-alive' h", str)
    assert imported.settings == {}
    assert imported.notes == ["Ignored, as it does not change what is sent: --no-keepalive."]
    # Headers that a spec cannot say are named.
    flags = "-d x -H Content-Type: -e ';auto'"
    flags += (
        " -H 'Expect: 100-continue' -H 'transfer-encoding: chunked' -H Accept: -H X-None: -A '' -H 'TE: a'"
    )
    imported = read_curl(f"curl h {flags}", str)
    assert (imported.requests[0].headers, imported.settings) == ([], {})
    assert imported.notes == [
        "Left out, as Oku frames requests by itself: Expect, transfer-encoding, TE.",
        "Sent all the same, as Oku always sends it: Content-Type, Accept, User-Agent.",
        "Redirects are followed without a Referer of their own: -e ;auto.",
    ]


@pytest.mark.parametrize(
    ("flags", "is_http2"),
    [
        ("", False),
        ("--http2", True),
        ("--http2-prior-knowledge", True),
        ("--http1.1", False),
        ("--http2 --http1.1", False),
        ("--http1.1 --http2", True),
        ("--http3", False),
        ("--http2 --http3", True),
    ],
)
def test_the_version_of_http_is_that_of_curl(flags: str, *, is_http2: bool) -> None:
    """The last flag counts; the one of HTTP/1.1 needs no key."""
    settings = read_curl(f"curl {flags} https://h/", str).settings
    assert settings == ({"http2": True} if is_http2 else {})


@pytest.mark.parametrize(
    ("flags", "headers"),
    [
        ("--http2 -H 'te: trailers'", [("te", "trailers")]),
        ("--http2 -H 'TE: Trailers' -H 'Connection: TE'", [("TE", "Trailers")]),
        ("--http2 -H 'TE: gzip'", []),
        ("-H 'TE: trailers'", []),
        ("--http2 -L -H 'TE: trailers'", []),
    ],
)
def test_trailers_are_asked_for_over_http2(flags: str, headers: list[tuple[str, str]]) -> None:
    """As calls of gRPC do; in HTTP/1.1 it is a matter of the connection."""
    [request] = read_curl(f"curl {flags} https://h/", str).requests
    assert request.headers == headers


def test_a_version_that_cannot_be_spoken_is_named() -> None:
    """HTTP/3 is not spoken, no connection is upgraded, and HTTP/2 gives way to keys that exclude it."""
    imported = read_curl("curl -s --http3 http://h/", str)
    assert imported.notes == [
        "Ignored, as it does not change what is sent: --silent.",
        "Not sent as HTTP/3, which Oku does not speak: --http3.",
    ]
    for command, notes in [
        ("--http2 https://h/", []),
        ("--http2-prior-knowledge http://h/", []),
        (
            "--http2 h",
            ["In clear text, HTTP/2 is spoken from the beginning, as with --http2-prior-knowledge."],
        ),
    ]:
        assert read_curl(f"curl {command}", str).notes == notes
    for flags, key in [("-L", "max-redirects"), ("-x p:1", "proxy"), ("-H 'Connection: close'", "keepalive")]:
        imported = read_curl(f"curl --http2 -k {flags} https://h/", str)
        assert imported.settings.keys() == {"insecure", key}
        assert imported.notes == [f"Sent as HTTP/1.1, for HTTP/2 cannot be combined with {key}: --http2."]


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("wget http://h/", "it does not begin with curl"),
        ("", "it does not begin with curl"),
        ("curl -s", "it has no URL"),
        ("curl h -b jar.txt", "-b: jar.txt is a file of cookies"),
        ("curl h -H @f", "-H: @f is a file of headers"),
        ("Invoke-WebRequest h", "it does not begin with curl; browsers copy such a command as cURL"),
        ("curl 'http://h/{a,b}'", "stands for other URLs: give them one by one, or -g"),
        ("curl 'http://h/{id}'", "stands for other URLs"),
        ("curl -X report h", "-X: report is sent as it is by curl, but in upper case by Oku"),
        ("curl 'http://h/[1-3]'", "stands for other URLs"),
        ("curl http://h/a/../b", "has dots that curl takes out: leave them out, or --path-as-is"),
    ],
)
def test_what_cannot_be_read_is_said(command: str, message: str) -> None:
    """In one line."""
    with pytest.raises(ValueError, match=message):
        read(command)
