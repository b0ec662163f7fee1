from base64 import b64encode
from typing import Any

from oku_cli.imports.har.har_body import PostedBody, read_posted

FORM = "application/x-www-form-urlencoded"


def test_bodies() -> None:
    """A text counts, else the fields of a form; empty fields stay."""
    fields = [{"name": "user", "value": "a b"}, {"name": "empty", "value": ""}, {"name": "none"}, 1, {}]
    odd = [{"name": "none", "value": None}, {"name": "number", "value": 5}, {"name": "flag", "value": True}]
    cases: list[tuple[Any, PostedBody]] = [
        (None, PostedBody()),
        ({"mimeType": "", "text": ""}, PostedBody()),
        ({"mimeType": "text/x", "text": "a"}, PostedBody("a", "text/x")),
        ({"text": "a=1", "params": fields}, PostedBody("a=1")),
        ({"text": "", "params": fields}, PostedBody("user=a+b&empty=&none=", FORM)),
        ({"params": odd}, PostedBody("none=&number=5&flag=true", FORM)),
        (
            {"mimeType": f"{FORM}; charset=x", "params": fields[:1]},
            PostedBody("user=a+b", f"{FORM}; charset=x"),
        ),
        ({"text": b64encode("ü".encode()).decode(), "encoding": "base64"}, PostedBody("ü")),
        (
            {"text": b64encode(b"\xff").decode(), "encoding": "base64"},
            PostedBody(notes=["its body is not text in UTF-8 and left out: give the file of it as @FILE"]),
        ),
    ]
    assert [read_posted(posted, "") for posted, _ in cases] == [body for _, body in cases]


def test_forms_with_files() -> None:
    """With the boundary of the recording, and a note for each file that it does not contain."""
    fields = [
        {"name": "a", "value": "1"},
        {"name": "f", "fileName": "f.txt", "contentType": "text/plain", "value": "x"},
        {"name": "g", "fileName": "g.png"},
    ]
    kind = 'multipart/form-data; boundary="--b"'
    posted = read_posted({"mimeType": "multipart/form-data", "params": fields}, kind)
    assert posted.body == (
        '----b\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n'
        '----b\r\nContent-Disposition: form-data; name="f"; filename="f.txt"\r\n'
        "Content-Type: text/plain\r\n\r\nx\r\n"
        '----b\r\nContent-Disposition: form-data; name="g"; filename="g.png"\r\n\r\n\r\n----b--\r\n'
    )
    assert (posted.type, posted.notes) == (
        kind,
        ["the file g.png is not in the recording: an empty one is sent"],
    )
    posted = read_posted({"mimeType": "multipart/form-data", "params": fields[:1]}, "")
    assert posted.type == "multipart/form-data; boundary=oku-form-boundary"
    assert posted.body is not None
    assert posted.body.startswith("--oku-form-boundary\r\n")


def test_a_field_cannot_add_a_header_to_its_part() -> None:
    """Neither by its name nor by that of its file or by its type."""
    field = {"name": 'a"\r\nb', "fileName": 'c"\nd', "contentType": "x/y\r\nz", "value": "1"}
    posted = read_posted({"mimeType": "multipart/form-data", "params": [field]}, "")
    assert posted.body is not None
    assert posted.body.split("\r\n")[1:4] == [
        'Content-Disposition: form-data; name="a%22%0D%0Ab"; filename="c%22%0Ad"',
        "Content-Type: x/y z",
        "",
    ]
