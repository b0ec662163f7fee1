import io
import json
import os
import sys
import time
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kit.runs.specs import specs

from oku_cli.options.spec.input_file import LARGEST_BYTES
from oku_cli.options.spec.spec_file import SPEC_FILE, read_spec_file
from oku_cli.yaml_reader import decode_yaml
from oku_core.errors import UserError
from oku_core.json_reader import decode_json
from oku_core.spec.parser import Source, SpecError, build_mapping, parse_spec
from oku_core.spec.spec import Spec, decode_spec, encode_spec
from oku_core.spec.values.check import parse_expect_status
from oku_core.spec.values.request_content import parse_headers

BOMB = "a: &a [x]\n" + "".join(
    f"{new}: &{new} [{', '.join([f'*{old}'] * 9)}]\n" for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)
REFUSED = {
    "alias bomb": (BOMB, "line 2: *a: aliases are not allowed, write the value itself"),
    "recursive alias": ("url: &u [*u]", "line 1: *u: aliases are not allowed"),
    "merge key": ("x: &x {a: 1}\nheader:\n  <<: *x", "line 3: *x: aliases are not allowed"),
    "merge without alias": ("<<: {requests: 1}", "<<: unknown key"),
    "bool tag": ("insecure: !!bool x", "line 1: !!bool: tags are not allowed"),
    "set": ("header: !!set {a, b}", "line 1: !!set: tags"),
    "binary": ("body: !!binary aGk=", "line 1: !!binary: tags"),
    "timestamp": ("name: !!timestamp 2020-01-01", "line 1: !!timestamp: tags"),
    "python": ("name: !!python/object/apply:os.system [id]", "line 1: !!python/object/apply:os.system: tags"),
    "own tag": ("name: !x y", "line 1: !x: tags"),
    "tag of a key": ("!!str name: y", "line 1: !!str: tags"),
    "impossible date": ("timeout: 2020-99-99", "timeout: 2020-99-99 is not a duration"),
    "deep lists": ("url: " + "[" * 100_000, "line 1: is nested more than 40 deep"),
    "deep mappings": ("".join(" " * i + "a:\n" for i in range(1000)), "line 41: is nested more than 40 deep"),
    "deep dashes": ("url:\n " + "- " * 400_000, "line 2: is nested more than 40 deep"),
    "huge integer": (f"requests: {'9' * 5000}", "requests: '99999"),
    "infinity": ("timeout: .inf", "timeout: .inf is not a duration"),
    "no number": ("timeout: .nan", "timeout: .nan is not a duration"),
    "sexagesimal": ("requests: 1:30", "requests: 1:30 is not a number"),
    "octal": ("requests: 0o17", "requests: 0o17 is not a number"),
    "yes": ("insecure: yes", "insecure: yes is not true or false"),
    "text for a switch": ("insecure: 'true'", "insecure: true is not true or false"),
    "null": ("name: null", "name: null is not text"),
    "duplicate key": ("requests: 1\nurl: http://h/\nrequests: 2", "line 3: requests: is given twice"),
    "duplicate header": ("header:\n  A: 1\n  A: 2", "line 3: A: is given twice"),
    "two ways to write a key": ("range-size: 1\nrange_size: 2", "range-size: is given twice"),
    "key that is no text": ("? [a]\n: b", "line 1: a key is not text"),
    "alias as key": ("name: &n x\n*n : y", "line 2: a key is not text"),
    "two documents": ("requests: 1\n---\nrequests: 2", "line 2: a second document begins"),
    "tab": ("header:\n\tA: b", "line 2: is not YAML: "),
    "NUL": ("name: a\0b", "is not YAML: byte 7: control characters are not allowed"),
    "list": ("- requests", "['requests'] is not a mapping of keys to values"),
    "scalar": ("http://h/", "http://h/ is not a mapping"),
    "long flow list": ("requests: [" + "1," * 250_000 + "]", "requests: ['1', '1',"),
    "unclosed": ("a: [", "line 2: is not YAML: "),
    "escape": ('name: "\\x1b[31m"', r"name: '\x1b[31m' is not a name"),
}

_ATTEMPTS = 3
"""Who shares a core with another thread needs up to twice the processor time."""


def read(path: Path) -> Spec:
    """The spec of a file."""
    return parse_spec(read_spec_file(str(path)))


def read_fault(path: Path) -> str:
    """What the user is told about a file."""
    with pytest.raises(UserError) as caught:
        read(path)
    return str(caught.value)


@pytest.mark.parametrize(("text", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_what_a_spec_cannot_be_is_refused_at_once(tmp_path: Path, text: str, message: str) -> None:
    """The line names the file and what is wrong in it, and comes within a second."""
    path = tmp_path / "spec.yaml"
    path.write_text(text)

    told = ""
    took_s: list[float] = []
    while not told or (min(took_s) >= 1 and len(took_s) < _ATTEMPTS):
        began = time.process_time()
        told = read_fault(path)
        took_s.append(time.process_time() - began)

    assert min(took_s) < 1
    assert told.startswith(f"{path}: {message}")
    assert len(told.splitlines()) == 1
    assert len(told) < len(str(path)) + 600


def test_a_json_body_is_read_as_yaml_is_written(tmp_path: Path) -> None:
    """A number in quotes is text, and so is what YAML 1.1 would take for something else."""
    path = tmp_path / "spec.yaml"
    path.write_text(
        "targets:\n  - url: http://h/\n"
        "    json: {sku: '{i}', n: 1, quoted: '1', no: no, on: ~, list: [1.50, x]}\n"
        "    expect: {status: 201, json: {/id: 17, /name: Anna, /code: '17'}, within: 500ms}\n"
    )
    (target,) = read(path).targets
    assert target.body == '{"sku":"{i}","n":1,"quoted":"1","no":"no","on":null,"list":[1.5,"x"]}'
    assert target.expect.json == ("/id=17", '/name="Anna"', '/code="17"')
    path.with_suffix(".json").write_text('{"targets": [{"url": "http://h/", "json": {"n": 1, "m": "1"}}]}')
    assert read(path.with_suffix(".json")).targets[0].body == '{"n":1,"m":"1"}'


def test_a_scalar_means_what_it_means_as_a_flag(tmp_path: Path) -> None:
    """YAML would turn 010 into 8, 1.10 into 1.1 and no into false, and refuse a date as the name."""
    path = tmp_path / "spec.yaml"
    path.write_text(
        "requests: 010\nname: 2020-01-01\nbody: no\ntimeout: 1_0\nexpect_status: [200, 404]\n"
        "header: {X-Version: 1.10, X-Id: 007, X-On: on}\ninsecure: true\nconcurrency: 1k\n"
    )
    assert read(path) == Spec(
        requests=10, name="2020-01-01", method="POST", body="no", timeout_s=10.0,
        expect_status=parse_expect_status("200,404"),
        headers=parse_headers(["X-Version: 1.10", "X-Id: 007", "X-On: on"]), insecure=True, concurrency=1000,
    )  # fmt: skip
    # A scalar without quotes can be sent to workers.
    path.write_text(
        "base-url: http://h\ncacert: ca.pem\nexpect-body: ok\nexpect-json: /a=1\n"
        "targets: [{name: a, url: /, body: text, method: put, header: {A: b}}]\n"
    )
    spec = read(path)
    assert decode_spec(encode_spec(spec)) == spec
    path.write_text("url: http://h/\nbody: text\nproxy: http://p:1\nname: a b\nmethod: put\n")
    assert decode_spec(encode_spec(read(path))) == read(path)


@settings(max_examples=30)
@given(specs())
def test_a_spec_comes_back_from_yaml_and_from_json(spec: Spec) -> None:
    """A spec that other programs have written is read unchanged."""
    mapping = build_mapping(spec)
    # PyYAML writes a U+0085 as the end of a line unless it is escaped, and itself reads a blank there.
    is_escaped = "\x85" in json.dumps(mapping, ensure_ascii=False)
    text = yaml.safe_dump(mapping, allow_unicode=not is_escaped, sort_keys=False)
    assert parse_spec(Source("spec.yaml", decode_yaml(text.encode(), SPEC_FILE))) == spec
    assert parse_spec(Source("spec.json", decode_json(json.dumps(mapping).encode()))) == spec


@given(st.binary() | st.text("-:[]{}&*!|>'\"%@`#?, \n\tab01").map(str.encode))
def test_any_bytes_are_read_or_refused_in_a_line(content: bytes) -> None:
    """They never raise anything else."""
    told = ""
    try:
        decode_yaml(content, SPEC_FILE)
    except ValueError as error:
        told = str(error)
    assert len(told.splitlines()) <= 1


def test_a_mark_of_the_encoding_is_understood(tmp_path: Path) -> None:
    """Editors and shells of Windows write one."""
    for encoding in ["utf-8-sig", "utf-16"]:
        path = tmp_path / "spec.yaml"
        path.write_text("name: 億\n", encoding=encoding)
        assert read(path).name == "億"
    for text in ["", "---\n", "# nothing yet\n", "{}", "null"]:
        # A file with nothing in it says nothing. An empty file changes nothing.
        path = tmp_path / "spec.yaml"
        path.write_text(text)
        assert read(path) == Spec()


def test_a_file_called_json_is_json(tmp_path: Path) -> None:
    """Tabs and pairs of surrogates are accepted, too."""
    path = tmp_path / "spec.json"
    path.write_text('{\n\t"requests": 5,\n\t"name": "\\ud83d\\ude00"}')
    assert read(path) == Spec(requests=5, name="😀")
    path.write_text('{"requests": 1, "requests": 2}')
    assert read_fault(path) == f"{path}: requests: is given twice"


def test_standard_input_may_be_a_spec(monkeypatch: pytest.MonkeyPatch) -> None:
    """A spec can be read from a pipe."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"requests: 7")))
    assert parse_spec(read_spec_file("-")).requests == 7
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"requests: 0")))
    with pytest.raises(SpecError, match=r"^standard input: requests: 0 is not at least 1$"):
        parse_spec(read_spec_file("-"))
    for text in ['{\n\t"requests": 5, "name": "\\ud83d\\ude00"}', "{requests: 5, name: 😀}"]:
        # Standard input is yaml or json. No name says which of them it is.
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        assert parse_spec(read_spec_file("-")) == Spec(requests=5, name="😀")
    for text in ["", " \n"]:
        # Standard input with nothing in it is refused.
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        with pytest.raises(UserError, match=r"^standard input: is empty, a spec is expected$"):
            read_spec_file("-")


def test_only_regular_files_of_bounded_size_are_read(tmp_path: Path) -> None:
    """Neither a pipe that nobody writes to nor a file without an end is waited for."""
    pipe, large = tmp_path / "pipe", tmp_path / "large"
    os.mkfifo(pipe)
    large.write_bytes(b"#" * (LARGEST_BYTES + 1))
    fault = "is neither a regular file nor - for standard input"

    assert read_fault(tmp_path) == f"{tmp_path}: Is a directory"
    assert read_fault(pipe) == f"{pipe}: {fault}"
    assert read_fault(Path("/dev/zero")) == f"/dev/zero: {fault}"
    assert read_fault(large) == f"{large}: is larger than 1 MiB"
    assert read_fault(tmp_path / "none") == f"{tmp_path / 'none'}: No such file or directory"
    assert read_fault(tmp_path / "a\0b").endswith(" is not the path of a file")
