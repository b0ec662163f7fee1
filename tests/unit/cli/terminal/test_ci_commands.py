"""No text and no document that Oku writes has a line that a CI system takes for a command."""

import html
import json
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.kit.ci_systems import COMMANDS, find_command

import oku_cli
from oku_cli.imports.headers import SecretBox
from oku_cli.imports.imported_spec import ImportedRequest, ImportedSpec
from oku_cli.imports.spec_writer import write_spec
from oku_cli.options.spec.spec_file import SPEC_FILE
from oku_cli.process.standard_streams import StandardStreams
from oku_cli.report.markup import element
from oku_cli.terminal.ci_commands import defuse, escape_marks, has_mark, keep_line
from oku_cli.terminal.printable import escape_json, make_printable
from oku_cli.yaml_reader import decode_yaml

PARTS = st.sampled_from(
    (
        "#", "##", "vso", "teamcity", "[", "::", ":", "error", "---", "--", "-", "+++", "~~~", "^^^", " ",
        "\n", "\r", "\u00ad", "\u200d", "\u3000", "\x1b[1m", "\x1b", "a", "é", '"', "\\", "<", *COMMANDS,
    )
)  # fmt: skip
TEXTS = st.lists(PARTS, max_size=12).map("".join)
PLAIN = (
    "GET http://[::1]:8080/a::b?x=#top [1]", "a -- b --- c", "    ~~~~^^^", "# heading", "## heading [1]",
    "---", "- - -", "--no-keepalive", "#[derive]", "億 · 1,000/s", "a [b] ::", "std::vector",
)  # fmt: skip


def test_the_commands_of_every_system_are_defused() -> None:
    """One character is another, at the beginning of any line, and the length stays."""
    for command in COMMANDS:
        for text in (command, f"a\n{command}\nb", f"\x1b[1m{command}"):
            shown = "\n".join(map(make_printable, text.split("\n"))) if "\r" in text else text
            assert find_command(text) is not None, text
            assert find_command(defuse(shown)) is None, text
            assert len(defuse(shown)) == len(shown), text
    # Text that is no command stays as it is. Addresses, code, documents and Oku's own flags among it.
    for text in PLAIN:
        assert find_command(text) is None, text
        assert defuse(text) == text
    assert not has_mark("GET http://[fe80:1]:8080/a?x=#top [1]")


@given(st.lists(TEXTS))
def test_a_command_that_is_written_in_pieces_is_defused(pieces: list[str]) -> None:
    """What was written before is known, as far as it matters."""
    written, line = "", ""
    for piece in pieces:
        safe = defuse(piece, line)
        assert len(safe) == len(piece)
        written, line = written + safe, keep_line(line + safe)
    if "\r\x1b[0K" not in written:
        assert find_command(written) is None


def test_what_is_kept_of_a_line_is_bounded() -> None:
    """A line may go on for ever; the blanks at its beginning count as one that may begin with a command."""
    line = ""
    for piece in (" " * 1000, "a" * 1000, "##" + "\u200d" * 100):
        line = keep_line(line + piece)
        assert len(line) <= 201
    assert defuse("vso[x", line) == "vso?x"
    assert defuse("::error::", keep_line(" " * 1000)) == ":?error::"
    assert defuse("::error::", keep_line("a" * 1000)) == "::error::"


@given(TEXTS)
def test_a_document_means_the_same(text: str) -> None:
    """JSON, HTML and XML have escapes; none of their lines is a command."""
    document = escape_json(json.dumps({text: [text]}, ensure_ascii=False, indent=2).encode()).decode()
    assert json.loads(document) == {text: [text]}
    assert find_command(document) is None
    assert find_command(escape_json(document.encode(), is_ascii=True).decode()) is None
    page = element("p", text, title=text)
    assert html.unescape(page.partition(">")[2].removesuffix("</p>")) == html.unescape(html.escape(text))
    if "\r\x1b[0K" not in page:
        assert find_command(page) is None
    clean = "".join(char if char.isprintable() else " " for char in text)
    xml = ET.Element("a", b=clean)
    xml.text = clean
    written = escape_marks(ET.tostring(xml, encoding="unicode"), lambda char: f"&#{ord(char)};")
    read = ET.fromstring(written)  # of our own
    assert (read.text or "", read.attrib["b"]) == (clean, clean)
    assert find_command(written) is None


@given(TEXTS, TEXTS)
def test_an_imported_spec_means_the_same(text: str, note: str) -> None:
    """Its texts are foreign, and so is much of its comments; the writer may fold lines."""
    body = text + '"' * 90 + text
    request = ImportedRequest(url="http://h/", method="POST", body=body, notes=[note])
    written = write_spec(ImportedSpec(source="har", requests=[request], notes=[note]), SecretBox())
    assert find_command(written) is None
    assert decode_yaml(written.encode(), SPEC_FILE)["body"] == body


def test_the_keys_of_an_imported_body_are_no_commands() -> None:
    """Each begins a line."""
    body = json.dumps({command.strip(): [command] for command in COMMANDS if command.isprintable()})
    request = ImportedRequest(
        url="http://h/", method="POST", headers=[("Content-Type", "application/json")], body=body
    )
    spec = ImportedSpec(source="har", requests=[request, request])
    written = write_spec(spec, SecretBox())
    assert find_command(written) is None
    [target, *_] = decode_yaml(written.encode(), SPEC_FILE)["targets"]
    assert target["json"] == json.loads(body)


def test_the_standard_streams_write_no_command(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Whatever writes to them: views, logs, libraries, a traceback that nobody has caught."""
    monkeypatch.setattr(sys, "stdout", None)
    monkeypatch.setattr(sys, "stderr", None)
    StandardStreams()
    for stream in (sys.stdout, sys.stderr):
        for command in COMMANDS:
            print(make_printable(command), file=stream)
            stream.write(command[:2])
            print(make_printable(command[2:]), file=stream, end="\n", flush=True)
    shown = capfd.readouterr()
    for output in shown:
        assert find_command(output) is None
        assert output.count("\n") == 2 * len(COMMANDS)


def test_bytes_go_to_standard_output_from_places_that_escape_them() -> None:
    """The stream defuses text; bytes are documents, which have escapes of their own."""
    root = Path(oku_cli.__file__).parent
    found = {
        path.relative_to(root).as_posix()
        for path in root.rglob("*.py")
        if "stdout.buffer" in path.read_text()
    }
    assert found == {"commands/failures.py", "report/output_files.py", "terminal/json_output.py"}
