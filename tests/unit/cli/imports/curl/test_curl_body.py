import email
import re

import pytest

from oku_cli.imports.curl.curl_command import read_curl


def read_parts(flags: str) -> list[tuple[str, str | None, str | None, str]]:
    """Name, file name, content type and content of each part of a form, read by another library."""
    (request,) = read_curl(f"curl http://h/ {flags}", lambda name: f"{name}\nsecond\n").requests
    assert request.method == "POST"
    kind = dict(request.headers).get("Content-Type") or dict(request.headers)["content-type"]
    message = email.message_from_bytes(f"Content-Type: {kind}\n\n{request.body}".encode())
    return [
        (
            str(part.get_param("name", header="content-disposition")),
            part.get_filename(),
            part["content-type"],
            str(part.get_payload()),
        )
        for part in message.get_payload()
        if not isinstance(part, str)
    ]


def test_a_form_is_written_as_curl_writes_it() -> None:
    """Fields, files with their names and types, and contents of files as fields."""
    forms = {
        "-F a=1 -F 'b= x y '": [("a", None, None, "1"), ("b", None, None, "x y")],
        '-F \'a="x;y\\""\'': [("a", None, None, 'x;y"')],
        "-F 'a={};type=application/json'": [("a", None, "application/json", "{}")],
        "--form-string 'a=@f;type=x'": [("a", None, None, "@f;type=x")],
        "-F a=@dir/f.TXT": [("a", "f.TXT", "text/plain", "dir/f.TXT\nsecond\n")],
        "-F 'a=@f;filename=\"g;h\"; type=image/png'": [("a", "g;h", "image/png", "f\nsecond\n")],
        "-F a=@f": [("a", "f", "application/octet-stream", "f\nsecond\n")],
        "-F 'a=<f'": [("a", None, None, "f\nsecond\n")],
        "-H 'content-type: multipart/form-data' -F a=1": [("a", None, None, "1")],
        "-F a=oku-form-boundary": [("a", None, None, "oku-form-boundary")],
    }
    assert {flags: read_parts(flags) for flags in forms} == forms


def test_a_form_that_a_spec_cannot_express_is_refused() -> None:
    """In one line, which names the flag."""
    faults = {
        "-F a": "-F: a is not of the form NAME=VALUE",
        "-F a=@f,g": "-F: a=@f,g is not one text or file with a type and a filename",
        "-F 'a=1;encoder=base64'": "is not one text or file with a type and a filename",
        "-F '=(;type=multipart/mixed'": "is not one text or file with a type and a filename",
        "-F a=1 -d b=2": "-F: curl sends no form together with --data",
        "-G -F a=1": "-F: curl sends no form together with --get",
        "-G -d a=1 --url-query b=2": "--url-query: curl sends no query of its own together with --get",
        "-F a=1 -H 'Content-Type: multipart/form-data; boundary=x'": "leave the boundary out",
    }
    for flags, fault in faults.items():
        with pytest.raises(ValueError, match=re.escape(fault)):
            read_curl(f"curl http://h/ {flags}", str)
