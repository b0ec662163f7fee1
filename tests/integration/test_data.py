"""Runs with data, as a user types them: each row is sent once, whatever the engine."""

import csv
import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import parse_qsl, urlsplit

import pytest
from tests.kit.runs.local_run import run_oku

ROWS = 600


class Recorder(ThreadingHTTPServer):
    """A target that keeps what it was asked for, and answers some requests with 503, by their `X-Sku`."""

    request_queue_size = 128

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked: list[tuple[str, str, str]] = []
        self.refused: frozenset[str] = frozenset()

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Recorder

    def do_POST(self) -> None:
        """Keep path, header and body, and answer."""
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.server.asked.append((self.path, self.headers["X-Sku"], body))
        self.send_response(503 if self.headers["X-Sku"] in self.server.refused else 200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def target() -> Iterator[Recorder]:
    """A target for one test."""
    with Recorder() as recorder:
        Thread(target=recorder.serve_forever, daemon=True).start()
        yield recorder
        recorder.shutdown()


@pytest.mark.parametrize("engine", ["aiohttp", "httptools"])
def test_each_row_is_sent_once(engine: str, target: Recorder, tmp_path: Path) -> None:
    """What arrives are the rows of the file, none missing and none twice, over several workers."""
    rows = [(f"sku {row}/é", f'{row}, "x"\n') for row in range(ROWS)]
    with (tmp_path / "rows.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("sku", "text"), *rows])
    posted = {
        "method": "POST",
        "url": "/items?sku={sku}&i={i}",
        "header": {"X-Sku": "{i}"},
        "json": {"text": "{text}"},
    }
    spec = {"base-url": target.url, "targets": [posted], "data": "rows.csv", "engine": engine, "workers": 2}
    (tmp_path / "spec.json").write_text(json.dumps(spec))
    ended = run_oku("run", "spec.json", "--json", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout)["outcomes"]["ok"] == ROWS
    seen = {}
    for path, sku, body in target.asked:
        query = dict(parse_qsl(urlsplit(path).query))
        assert query["i"] == sku
        seen[int(query["i"])] = (query["sku"], json.loads(body)["text"])
    assert len(target.asked) == ROWS
    assert [seen[index] for index in range(ROWS)] == rows


def test_rows_start_over(target: Recorder, tmp_path: Path) -> None:
    """More requests than rows are refused, unless the rows may start over."""
    (tmp_path / "rows.jsonl").write_text('{"sku": "a"}\n{"sku": "b"}\n{"sku": "c"}\n')
    command = ("run", f"{target.url}/{{sku}}", "-d", "{sku}", "-n", "10", "-H", "X-Sku: {sku}", "--data")
    refused = run_oku(*command, "rows.jsonl", cwd=tmp_path)
    assert refused.returncode == 2
    assert refused.stderr == (
        "oku: --data: rows.jsonl has 3 rows, fewer than the 10 requests of this run; "
        "rows.jsonl:repeat starts over after the last row\n"
    )
    assert target.asked == []
    ended = run_oku(*command, "rows.jsonl:repeat", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert sorted(target.asked) == sorted((f"/{sku}", sku, sku) for sku in "abcabcabca")


@pytest.mark.parametrize("engine", ["aiohttp", "httptools"])
def test_a_row_of_json_is_sent_as_it_is(engine: str, target: Recorder, tmp_path: Path) -> None:
    """Byte by byte, and as JSON; `show` has it as well. Only a body can have a whole row."""
    lines = [f'{{"sku": "s{row}",  "price": {row}.50, "x": {{"y": "\\u00e9 é"}}}}' for row in range(200)]
    (tmp_path / "rows.jsonl").write_text("\n".join(lines))
    command = ("run", f"{target.url}/{{sku}}", "-H", "X-Sku: {price}", "--data", "rows.jsonl")
    ended = run_oku(*command, "--engine", engine, "-d", "{row}", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert sorted(target.asked) == sorted((f"/s{row}", f"{row}.50", lines[row]) for row in range(200))
    shown = run_oku("show", "latest", "--index", "7", cwd=tmp_path)
    assert lines[7] in shown.stdout
    assert "Content-Type: application/json" in shown.stdout
    refused = run_oku(*command, "-H", "X-Row: {row}", cwd=tmp_path)
    assert refused.returncode == 2
    assert refused.stderr == "oku: --header: X-Row: {row} is a whole row, which only a body can have\n"


@pytest.mark.parametrize("engine", ["aiohttp", "httptools"])
def test_a_retry_sends_the_rows_that_failed(engine: str, target: Recorder, tmp_path: Path) -> None:
    """Each under its index and no other, also where they lie in several blocks of the file."""
    (tmp_path / "rows.csv").write_text("sku\n" + "".join(f"sku-{row}\n" for row in range(ROWS)))
    failed = {0, *range(60, 70), 311, ROWS - 1}
    target.refused = frozenset(f"sku-{row}" for row in failed)
    command = ("run", f"{target.url}/{{i}}?sku={{sku}}", "-d", "{sku}", "-H", "X-Sku: {sku}")
    first = run_oku(*command, "--data", "rows.csv", "--engine", engine, "--json", cwd=tmp_path)
    assert json.loads(first.stdout)["outcomes"]["unexpected_status"] == len(failed), first.stderr
    listed = run_oku("failures", "latest", "--csv", cwd=tmp_path).stdout.splitlines()
    assert {int(row["index"]) for row in csv.DictReader(listed)} == failed
    target.refused, target.asked = frozenset(), []
    retried = run_oku("retry", "latest", "--json", cwd=tmp_path)
    assert retried.returncode == 0, retried.stderr
    assert json.loads(retried.stdout)["completes"]["ok_with_retries"] == ROWS
    assert sorted(target.asked) == sorted(
        (f"/{row}?sku=sku-{row}", f"sku-{row}", f"sku-{row}") for row in failed
    )
