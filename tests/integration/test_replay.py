"""One request of a run, shown and sent again: a target answers by its path, and keeps what it was asked."""

import csv
import gzip
import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.kit.coordinators.coordinator import TOKEN
from tests.kit.runs.local_run import run_oku
from tests.kit.runs.standing_stack import StandingStack, run_standing_stack
from tests.kit.servers.certificates import Certificates, build_server_tls

ROWS = 30
BODIES = {"/long": "é".encode() * 20_000 + b"end", "/image": b"\x89PNG\xff" * 9}
SHARE = {"item": 15, "buy": 10, "post": 5}

pytestmark = pytest.mark.timeout(120)


class Target(ThreadingHTTPServer):
    """Answers with what it was asked; `/cart` says that it is sold out, and some have compressed bodies.

    Attributes:
        asked: what came: path, `X-Sku`, body.
    """

    request_queue_size = 128
    asked: list[tuple[str, str | None, str]]

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked = []
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket, server_side=True)

    @property
    def url(self) -> str:
        """Where it listens, with a password."""
        return f"http://me:pw@127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Target

    def do_GET(self) -> None:
        """Keep what is asked, and answer in two headers and a body."""
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        self.server.asked.append((self.path, self.headers["X-Sku"], body))
        answer = b"sold out" if self.path == "/cart" else f"{self.path} {body}".encode()
        self.send_response(200)
        self.send_header("X-Odd", "a\x85b: c")
        if self.path in BODIES:
            answer = gzip.compress(BODIES[self.path])
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    do_POST = do_GET  # noqa: N815  # as the library calls it

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def serving(tls: ssl.SSLContext | None = None) -> Iterator[Target]:
    """A target until the end of the block."""
    with Target(tls) as started:
        threading.Thread(target=started.serve_forever, daemon=True).start()
        yield started
        started.shutdown()


@pytest.fixture
def target() -> Iterator[Target]:
    """A target for one test."""
    with serving() as started:
        yield started


def write_spec(folder: Path, target: Target, engine: str) -> None:
    """A spec of three targets with data, of which one fails a check."""
    with (folder / "skus.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("sku", "url"), *((f"s {row}/é", f"u{row}") for row in range(ROWS))])
    cart = {"sku": "{sku}"}
    targets: list[dict[str, Any]] = [
        {"name": "item", "weight": 3, "url": "/items/{sku}?i={i}", "header": {"X-Sku": "{i}"}},
        {"name": "buy", "weight": 2, "url": "/cart", "json": cart, "expect": {"body": "order"}},
        {"name": "post", "weight": 1, "url": "/{env:PLACE}", "method": "POST", "body": "i={i}"},
    ]
    spec = {"base-url": target.url, "targets": targets, "data": "skus.csv", "engine": engine, "workers": 1}
    (folder / "spec.json").write_text(json.dumps(spec))


def show(folder: Path, index: int, *where: str) -> dict[str, Any]:
    """The request of an index of the newest run."""
    shown = run_oku("show", "latest", "--index", str(index), "--json", *where, cwd=folder)
    request: dict[str, Any] = json.loads(shown.stdout)
    return request


def find_indices(folder: Path) -> dict[str, int]:
    """An index of each target of the newest run."""
    found: dict[str, int] = {}
    for index in range(ROWS):
        found.setdefault(show(folder, index)["target"], index)
        if len(found) == len(SHARE):
            break
    return found


@pytest.mark.parametrize("engine", ["aiohttp", "httptools"])
def test_a_request_is_shown_and_sent_as_its_worker_sent_it(
    engine: str, target: Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And it counts as it did: one that was ok is ok, one that failed its check fails it again."""
    monkeypatch.setenv("PLACE", "secret-place")
    write_spec(tmp_path, target, engine)
    ran = run_oku("run", "spec.json", "--json", "--allow-env", "PLACE", cwd=tmp_path)
    assert json.loads(ran.stdout)["outcomes"]["failed_check"] == SHARE["buy"], ran.stderr
    asked = list(target.asked)
    indices = find_indices(tmp_path)

    item = indices["item"]
    shown = run_oku("show", "latest", "--index", str(item), cwd=tmp_path).stdout
    assert f"GET /items/s%20{item}%2F%C3%A9?i={item} HTTP/1.1\n" in shown
    assert f"Row: sku=s {item}/é, url=u{item}\n" in shown
    assert "pw" not in shown
    assert target.asked == asked

    replayed = run_oku("replay", "latest", str(item), cwd=tmp_path)
    assert (replayed.returncode, replayed.stderr) == (0, "")
    assert replayed.stdout.startswith(shown)
    assert f"\n\n/items/s%20{item}%2F%C3%A9?i={item} \n\nok, after " in replayed.stdout
    assert target.asked == [*asked, (f"/items/s%20{item}%2F%C3%A9?i={item}", str(item), "")]
    assert target.asked[-1] in asked

    buy = indices["buy"]
    replayed = run_oku("replay", "latest", str(buy), "--json", cwd=tmp_path)
    outcome = json.loads(replayed.stdout)
    assert (replayed.returncode, outcome["outcome"], outcome["reason"]) == (1, "failed_check", "check body")
    assert (outcome["answer"]["status"], outcome["answer"]["body"]) == (200, "sold out")
    assert ["X-Odd", "a\x85b: c"] in outcome["answer"]["headers"]
    assert outcome["request"]["body"] == f'{{"sku":"s {buy}/é"}}'
    assert target.asked[-1] == ("/cart", None, f'{{"sku":"s {buy}/é"}}')

    post = str(indices["post"])
    refused = run_oku("replay", "latest", post, cwd=tmp_path)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "{env:PLACE} is not allowed here: --allow-env PLACE allows it" in refused.stderr
    sent = len(target.asked)
    replayed = run_oku("replay", "latest", post, "--allow-env", "PLACE", cwd=tmp_path)
    assert (replayed.returncode, len(target.asked)) == (0, sent + 1)
    assert target.asked[-1] == ("/secret-place", None, f"i={post}")
    assert "secret-place" not in replayed.stdout


def test_failures_are_listed_with_the_rows_that_they_were_made_of(target: Target, tmp_path: Path) -> None:
    """A column with a name of ours is told apart; without failures of a kind there is only the head."""
    write_spec(tmp_path, target, "httptools")
    spec = json.loads((tmp_path / "spec.json").read_text())
    spec["targets"][0]["expect"] = {"status": "404"}
    del spec["targets"][2]
    (tmp_path / "spec.json").write_text(json.dumps(spec))
    run_oku("run", "spec.json", "--quiet", cwd=tmp_path)
    head, *rows = csv.reader(run_oku("failures", "latest", "--csv", cwd=tmp_path).stdout.splitlines())
    assert head == ["index", "outcome", "status", "reason", "target", "method", "url", "sku", "data.url"]
    assert len(rows) == ROWS
    for number, (index, outcome, _, reason, name, method, url, *row) in enumerate(rows):
        assert (int(index), row) == (number, [f"s {index}/é", f"u{index}"])
        place = target.url.replace("me:pw", "***")
        if name == "item":
            assert (outcome, reason, method) == ("unexpected_status", "status 200", "GET")
            assert url == f"{place}/items/s%20{index}%2F%C3%A9?i={index}"
        else:
            assert (outcome, method, url) == ("failed_check", "POST", f"{place}/cart")
    ranges = json.loads(run_oku("failures", "latest", "--json", "--target", "buy", cwd=tmp_path).stdout)
    listed = [index for each in ranges["failures"] for index in range(each["start"], each["stop"])]
    assert listed == [int(row[0]) for row in rows if row[4] == "buy"]


@pytest.fixture
def standing(tmp_path: Path) -> Iterator[StandingStack]:
    """A stack with a coordinator that others use."""
    folder = tmp_path / "stack"
    folder.mkdir()
    with run_standing_stack(folder, 1) as stack:
        yield stack


def test_requests_of_a_remote_run_are_fetched_from_its_coordinator(
    standing: StandingStack, target: Target, tmp_path: Path
) -> None:
    """Their rows, which have colons as addresses have, and a body that is a file."""
    where = ("--coordinator", standing.api.url, "--token", TOKEN)
    (tmp_path / "skus.csv").write_text("sku\n" + "".join(f"::{row}\n" for row in range(ROWS)))
    (tmp_path / "body.txt").write_text("{sku} from a file")
    flags = ("--data", "skus.csv", "--body", "@body.txt", "--expect-body", "::7 from")
    ran = run_oku("run", f"{target.url}/{{i}}", *flags, "--json", *where, cwd=tmp_path)
    outcomes = json.loads(ran.stdout)["outcomes"]
    assert (outcomes["ok"], outcomes["failed_check"]) == (1, ROWS - 1), ran.stderr
    shown = show(tmp_path, 7, *where)
    assert (shown["body"], shown["row"]) == ("::7 from a file", {"sku": "::7"})
    replayed = run_oku("replay", "latest", "7", *where, cwd=tmp_path)
    assert replayed.returncode == 0, replayed.stderr
    assert target.asked[-1] == ("/7", None, "::7 from a file")
    replayed = run_oku("replay", "latest", "8", *where, cwd=tmp_path)
    assert (replayed.returncode, "failed check: check body" in replayed.stdout) == (1, True)
    rows = list(
        csv.DictReader(run_oku("failures", "latest", "--csv", *where, cwd=tmp_path).stdout.splitlines())
    )
    assert [row["sku"] for row in rows] == [f"::{row}" for row in range(ROWS) if row != 7]


@pytest.mark.parametrize("engine", ["aiohttp", "httptools"])
def test_of_a_body_that_is_long_or_no_text_what_is_shown_is_said(
    engine: str, target: Target, tmp_path: Path
) -> None:
    """What is compressed is shown as it was before that."""
    urls = ("--url", f"{target.url}/long", "--url", f"{target.url}/image")
    run_oku("run", *urls, "-n", "2", "--engine", engine, "--quiet", cwd=tmp_path)
    came = [len(gzip.compress(body)) for body in BODIES.values()]
    long = run_oku("replay", "latest", "0", cwd=tmp_path).stdout
    assert "éé" in long
    assert "end" not in long
    assert f"é\n(this is the beginning; {came[0]} bytes came)\n\nok, after " in long
    image = run_oku("replay", "latest", "1", cwd=tmp_path).stdout
    assert f"\n({came[1]} bytes that are not text)\n\nok, after " in image


def test_a_private_key_stays_at_the_coordinator(standing: StandingStack, tmp_path: Path) -> None:
    """Whoever has it here can name it; the authority is fetched."""
    certificates = Certificates(tmp_path)
    tls = build_server_tls(certificates.authority, "127.0.0.1", clients=certificates.authority)
    where = ("--coordinator", standing.api.url, "--token", TOKEN)
    files = ("--cacert", f"@{certificates.cacert}", "--cert", f"@{certificates.cert}")
    with serving(tls) as target:
        url = target.url.replace("http:", "https:")
        flags = ("-n", "2", *files, "--key", f"@{certificates.key}", "--quiet")
        ran = run_oku("run", url, *flags, *where, cwd=tmp_path)
        assert ran.returncode == 0, ran.stderr
        refused = run_oku("replay", "latest", "1", *where, cwd=tmp_path)
        assert (refused.returncode, refused.stdout) == (2, "")
        assert "is a private key or a client certificate, which only workers get" in refused.stderr
        own = ("--cert", certificates.both)
        replayed = run_oku("replay", "latest", "1", *own, *where, cwd=tmp_path)
    assert (replayed.returncode, replayed.stderr) == (0, "")
    assert "\nok, after " in replayed.stdout


def test_what_cannot_be_shown_or_sent_is_one_line(tmp_path: Path) -> None:
    """An index that is not there, a target that is gone."""
    run_oku("run", "-n", "10", "--quiet", cwd=tmp_path)
    shown = run_oku("show", "latest", "--index", "3", cwd=tmp_path).stdout
    assert "\nGET /3 HTTP/1.1\nHost: delay-server\n" in shown
    for command, said in (
        (("replay", "latest", "10"), "INDEX: 10 is not an index of run "),
        (("show", "latest", "--index", "10"), "--index: 10 is not an index of run "),
        (("replay", "latest", "3"), "asked delay servers of Oku's own, which are gone"),
        (("failures", "latest", "--csv", "--json"), "--csv: cannot be combined with --json"),
    ):
        refused = run_oku(*command, cwd=tmp_path)
        assert (refused.returncode, refused.stdout, refused.stderr.count("\n")) == (2, "", 1)
        assert said in refused.stderr
