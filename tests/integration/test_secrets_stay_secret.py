"""A named secret is in no output of a run, whatever user code and targets do with it.

User code gives it away in every way by which a text of it comes to a worker. No part of it may be anywhere: a
half that was left where a text was cut is as bad as the whole.
"""

import base64
import gzip
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote

import pytest
from tests.kit.runs.local_run import run_oku

SECRET = "Zq7-wV/9k \"x'Q\\+Jt4=pLm8%"
PEM = ["BEGIN-KEY-----", "Hb3xVq9TzK5m", "Rw8LcY2fNj6d", "END-KEY-----"]
WINDOW = 7
"""So many characters of it in a row are a part of it."""

SPEC = """\
scenario: {file}
base-url: "{url}/{{file:key.pem}}"
header:
  Authorization: "Bearer {{env:OKUTEST_TOKEN}}"
users: 2
workers: 1
"""
WAYS = """
import base64, json, logging, os, sys
from urllib.parse import quote
S = os.environ["OKUTEST_TOKEN"]
FORMS = [
    S, repr(S), json.dumps({"token": S}), quote(S, safe=""), quote(S, safe="/'+="), f"http://me:{quote(S)}@h/?token={quote(S)}",
    base64.b64encode(f"me:{S}".encode()).decode(), f"{'x' * 985}{S}", f"{'y' * 185}{S}", f"{'z' * 108} {S}",
]

def tell(text):
    print(text)
    print("p" * 4080 + text)
    sys.stderr.write(text + "\\n")
    logging.getLogger("shop").warning("%s", text)
"""
SCENARIO = f"""{WAYS}
from oku import record

PEM = open(os.environ["OKUTEST_PEM"]).read().split()

async def setup(http):
    tell(S)
    print("\\n".join(PEM))
    return {{"is_set_up": True}}

async def teardown(http):
    raise RuntimeError("\\n".join([*PEM, S]))

async def scenario(index, http):
    text = FORMS[index % 10]
    way = index // 10
    if way == 0:
        raise ValueError(text)
    if way == 1:
        assert False, text
    if way == 2:
        raise ExceptionGroup(text, [KeyError(text), OSError(5, text)])
    if way == 3:
        async with record(text) as what:
            what.fail(text)
    if way == 4:
        await http.get("/", name=text).check(lambda answer: False, text)
    if way == 5:
        answer = await http.get("/")
        raise ValueError(answer.text)
    if way == 6:
        try:
            raise ValueError(text)
        except ValueError as error:
            error.add_note(text)
            raise LookupError("noted") from error
    if way == 7:
        tell(text)
    if way == 8 and text is S:
        sys.exit(S)
    if way == 9:
        await http.get(f"http://127.0.0.1:9/{{quote(text)}}?{{quote(text)}}")
"""
LOCUSTFILE = f"""{WAYS}
from locust import HttpUser, task

class Visitor(HttpUser):
    @task
    def visit(self):
        text = FORMS[self.oku.index % 10]
        way = self.oku.index // 10
        tell(text)
        if way == 0:
            raise ValueError(text)
        if way == 1:
            with self.client.get("/", name=text, catch_response=True) as response:
                response.failure(text)
        if way == 2:
            self.environment.events.request.fire(
                request_type=text, name=text, response_time=1, response_length=1, exception=ValueError(text),
            )
            raise ValueError(self.client.get("/").text)
        if way == 3:
            self.client.get(f"http://127.0.0.1:9/{{quote(text)}}?{{quote(text)}}")
"""
BROKEN = f"{WAYS}\nraise ImportError('x' * 980 + S)\nasync def scenario(index): ...\n"


class Ear(BaseHTTPRequestHandler):
    """A target whose answers repeat what was asked, and a Loki that takes all."""

    heard: list[bytes]

    def do_GET(self) -> None:
        """Say the request again."""
        body = f"{self.path}\n{self.headers}".encode()
        status = f"HTTP/1.1 418 {self.headers.get('Authorization')}\r\nContent-Length: {len(body)}\r\n\r\n"
        self.wfile.write(status.encode("latin-1") + body)

    def do_POST(self) -> None:
        """Keep what is pushed."""
        self.heard.append(gzip.decompress(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(204)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args: object) -> None:
        """Nothing."""


@pytest.fixture
def ear() -> Iterator[tuple[str, list[bytes]]]:
    """Its URL, and what was pushed to it."""
    heard: list[bytes] = []
    handler = type("OwnEar", (Ear,), {"heard": heard, "protocol_version": "HTTP/1.1"})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}", heard
        server.shutdown()


def list_parts() -> set[bytes]:
    """Every part of the secrets, in every form in which they are given away."""
    forms = [SECRET, repr(SECRET), json.dumps(SECRET), quote(SECRET, safe=""), quote(SECRET), *PEM[1:3]]
    forms += [quote(SECRET, safe="/'+=")]  # as yarl writes a path
    forms += [base64.b64encode(f"{before}{SECRET}".encode()).decode() for before in ("", "me:")]
    windows = {form[at : at + WINDOW] for form in forms for at in range(len(form) - WINDOW + 1)}
    return {window.encode() for window in windows}


@pytest.mark.timeout(180)
@pytest.mark.parametrize(
    ("file", "source", "iterations"),
    [("scenario.py", SCENARIO, 100), ("locustfile.py", LOCUSTFILE, 40), ("scenario.py", BROKEN, 1)],
    ids=["scenario", "locustfile", "load error"],
)
def test_no_part_of_a_secret_is_in_any_output(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    ear: tuple[str, list[bytes]],
    file: str,
    source: str,
    iterations: int,
) -> None:
    """Terminal, ledger, logs, reports as Markdown, JSON, JUnit and HTML, and Loki."""
    url, heard = ear
    monkeypatch.setenv("OKUTEST_TOKEN", SECRET)
    code, secrets, data, results = (tmp_path / name for name in ("code", "secrets", "data", "results"))
    monkeypatch.setenv("OKUTEST_PEM", str(secrets / "key.pem"))
    code.mkdir()
    secrets.mkdir()
    results.mkdir()
    (secrets / "key.pem").write_text("\n".join(PEM))
    (code / file).write_text(source)
    (code / "spec.yaml").write_text(SPEC.format(file=file, url=url))

    ran = run_oku(
        "run", "spec.yaml", "-n", str(iterations), "--data-dir", str(data), "--loki", url,
        "--allow-env", "OKUTEST_TOKEN", "--secrets-dir", str(secrets), "--summary-json", "../results/s.json",
        "--summary-markdown", "../results/s.md", "--junit", "../results/s.xml", cwd=code,
    )  # fmt: skip
    assert (data / "ledger.sqlite3").exists(), ran.stderr
    commands = (["show"], ["show", "--json"], ["failures"], ["report", "--json", "../results/r.json"])
    terminal = [ran, *(run_oku(*command, "--data-dir", str(data), cwd=code) for command in commands)]

    files = [path for folder in (data, results) for path in folder.rglob("*") if path.is_file()]
    outputs = {str(path.relative_to(tmp_path)): path.read_bytes() for path in files}
    outputs["Loki"] = b"".join(heard)
    for place, ended in enumerate(terminal):
        outputs[f"command {place}"] = (ended.stdout + ended.stderr).encode()
    parts = list_parts()
    found = {
        name: sorted(part for part in parts if part in content)
        for name, content in outputs.items()
        if any(part in content for part in parts)
    }
    assert found == {}
    assert heard, "Loki got no line"
    assert b"***" in outputs["data/ledger.sqlite3"], "nothing of what user code said is there"
    assert b"***" in outputs["data/logs/worker-1.log"]
