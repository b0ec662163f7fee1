"""A target and a scenario whose every text is a command for a CI system: nothing that Oku prints is one."""

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from threading import Thread

import pytest
from tests.kit.ci_systems import COMMANDS, find_command
from tests.kit.runs.local_run import run_oku

SCENARIO = """
async def scenario(http, index):
    print(f"##vso[print]{index}")
    answer = await http.get(f"/{index}", name="::notice::named", expect="any")
    if index % 2:
        answer.check(False, "##teamcity[check]")
    raise ValueError(f"{answer.status}\\n{answer.text()}\\n::error::last")
"""
SAID = "\n".join(COMMANDS)


@pytest.fixture
def target() -> Iterator[str]:
    """Says a command in status line and header, and all of them in the body; every second answer fails."""
    numbers = count()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:  # the library's name
            number = next(numbers)
            said = "".join(char for char in COMMANDS[number // 2 % len(COMMANDS)] if char.isascii())
            self.send_response(200 if number % 2 else 500, said.replace("\r", " "))
            self.send_header("X-Said", said.replace("\r", " "))
            self.send_header("Content-Length", str(len(SAID.encode())))
            self.end_headers()
            self.wfile.write(SAID.encode())

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_nothing_that_is_printed_is_a_command_for_a_ci_system(target: str, tmp_path: Path) -> None:
    """Progress, summaries, failures, answers, reports, files, logs: as text and as documents."""
    (tmp_path / "scenario.py").write_text(SCENARIO)
    files = ("--summary-markdown", "summary.md", "--junit", "junit.xml", "--summary-json", "summary.json")
    commands: list[tuple[str, ...]] = [
        ("run", f"{target}/{{i}}", "-n", "30", "--expect-json", "/a=##vso[x]", "--name", "::x::", *files),
        ("run", "scenario.py", "--host", target, "-n", "8", "--name", "##[x]", *files),
        ("runs", "--json"),
        ("show", "##[x]"),
        ("failures", "::x::", "--csv"),
        ("report", "##[x]", "-o", "-"),
        ("replay", "::x::", "3"),
    ]  # fmt: skip
    for arguments in commands:
        ended = run_oku(*arguments, cwd=tmp_path)
        outputs = [ended.stdout, ended.stderr, *((tmp_path / name).read_text() for name in files[1::2])]
        for output in outputs:
            assert find_command(output) is None, (arguments, output)
        assert "Traceback" not in ended.stderr, ended.stderr
        if arguments[0] == "replay":
            assert "setvariable" in ended.stdout, ended.stdout
    logs = [path.read_text() for path in (tmp_path / ".oku").rglob("*.log*")]
    assert any("user code: ##vso?print]" in log for log in logs)
    assert not list(filter(None, map(find_command, logs)))
