import io
from itertools import product
from pathlib import Path

import pytest
import yaml
from tests.unit.cli.command_line import call_oku


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to be in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_spec_is_printed_or_written(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    """Without secrets, unless they are asked for."""
    line = "curl http://h/ -H 'Authorization: Bearer abc'"
    assert call_oku(monkeypatch, "import", "curl", line) == 0
    printed = yaml.safe_load(capsys.readouterr().out)
    assert printed == {
        "url": "http://h/",
        "method": "GET",
        "header": {"Authorization": "Bearer {env:AUTHORIZATION}"},
    }
    assert call_oku(monkeypatch, "import", "curl", line, "--keep-secrets", "-o", "spec.yaml") == 0
    assert yaml.safe_load((folder / "spec.yaml").read_text())["header"] == {"Authorization": "Bearer abc"}


def test_a_command_is_read_from_standard_input(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    """It may be somebody else's, so it names files only in a folder that the command line allows."""
    (folder / "below").mkdir()
    (folder / "below" / "body").write_text("hello")
    (folder / "key").write_text("secret")

    def read(words: str, *flags: str) -> int | str | None:
        given = f"curl \\\n https://h \\\n {words}\n".encode()
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(given)))
        return call_oku(monkeypatch, "import", "curl", "-", *flags)

    assert read("-d @body --cacert body", "--files-dir", "below") == 0
    written = yaml.safe_load(capsys.readouterr().out)
    assert (written["body"], written["cacert"]) == ("hello", str(folder / "below" / "body"))
    refused = {
        ("key",): (
            "standard input: key is a file, and standard input may name files only with --files-dir FOLDER"
        ),
        ("../key", "--files-dir", "below"): (
            "standard input: ../key is not in the folder of --files-dir or below it"
        ),
    }
    for flag, ((file, *flags), fault) in product(("-d @", "--cacert ", "-E "), refused.items()):
        given = (f"{flag}{file}", *flags)
        assert read(*given) == 2
        shown = capsys.readouterr()
        assert (shown.out, shown.err) == ("", f"oku: {fault}\n"), given


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["curl", "curl -T f h"], "oku: curl: -T: a spec cannot say this"),
        (["curl", "curl h -d @none"], "oku: none: No such file or directory"),
        (["curl", "curl ftp://h/"], "oku: the spec: url: ftp://h/ has the scheme ftp"),
        (["curl", "curl h", "--files-dir", "."], "oku: --files-dir: is for a command from standard input"),
        (["har", "-", "--files-dir", "."], "oku: --files-dir: is allowed only with curl"),
        (["har", "none.har"], "oku: none.har: No such file or directory"),
        (["openapi", "bad.yaml"], "oku: bad.yaml: line 2: is not YAML: "),
        (["har", "half.har"], r"oku: half.har: 'http://h/\ud800' has characters that UTF-8 cannot encode"),
        (["curl", "curl h -d \ud800"], r"oku: curl: '\ud800' has characters that UTF-8 cannot encode"),
        (["har", "bad.yaml", "--base-url", "x"], "oku: --base-url: is allowed only with openapi"),
        (["curl", "curl h", "--assets"], "oku: --assets: is allowed only with har"),
        (["curl", "curl h", "-o", "no/spec.yaml"], "oku: --output: no/spec.yaml is not a file that can be"),
        (["wget", "x"], "oku: Invalid value for '{curl|har|openapi}'"),
    ],
)
def test_wrong_input_is_one_line(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    folder: Path,
    arguments: list[str],
    message: str,
) -> None:
    """Nothing is written, and the exit code is 2."""
    (folder / "bad.yaml").write_text("{")
    request = r'{"method": "GET", "url": "http://h/\ud800", "headers": []}'
    (folder / "half.har").write_text(f'{{"log": {{"entries": [{{"request": {request}}}]}}}}')
    assert call_oku(monkeypatch, "import", *arguments) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith(message)
    assert captured.err.count("\n") == 1
    assert captured.out == ""
