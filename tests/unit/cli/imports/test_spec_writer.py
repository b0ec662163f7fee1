import json
from typing import Any
from urllib.parse import unquote

import msgspec
from hypothesis import example, given
from hypothesis import strategies as st

from oku_cli.imports.headers import SecretBox
from oku_cli.imports.imported_spec import ImportedRequest, ImportedSpec, NeededCredential
from oku_cli.imports.spec_writer import write_spec
from oku_cli.options.spec.file_values import read_files
from oku_cli.options.spec.spec_file import SPEC_FILE
from oku_cli.yaml_reader import decode_yaml
from oku_core.spec.parser import Source, parse_spec
from oku_core.spec.request_template import RequestMix
from oku_core.spec.secrets import list_secrets
from oku_core.spec.spec import Spec
from oku_core.spec.values.template import read_literally
from oku_workers.engines.http.request_parts import split_request

JSON = ("Content-Type", "application/json")
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=10)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


def write(*requests: ImportedRequest, **fields: Any) -> str:
    """Write a spec of these requests."""
    return write_spec(ImportedSpec(source="curl", requests=requests, **fields), SecretBox())


def parse(text: str) -> Spec:
    """Parse a spec as `oku run` does."""
    return parse_spec(Source("spec", decode_yaml(text.encode(), SPEC_FILE)))


@given(VALUES)
@example({"\x85": "\u2028 a\n b"})
@example("1e5")
@example("{i}")
def test_a_json_body_means_what_it_meant(value: Any) -> None:
    """Whether it is written as YAML or as text."""
    body = json.dumps([value], ensure_ascii=False)
    posted = ImportedRequest(url="http://h/a", method="POST", headers=[JSON], body=body)
    target = parse(write(posted, ImportedRequest(url="http://h/b"))).targets[0]
    assert msgspec.json.decode(read_literally(target.body or "")) == [value]
    assert [str(header) for header in target.headers] == ["Content-Type: application/json"]


FOREIGN = ["{env:HOME}", "{file:id_rsa}", "{i}", "{literal:i}", "{env:", "{file:{i}", "{{i}", "{sku}", "}{"]
FOREIGN += ["a", "%7B", '"', "i}", "env:HOME}"]
FOREIGN_TEXTS = st.lists(st.sampled_from(FOREIGN), max_size=6).map("".join)


def read_request(spec: Spec) -> tuple[str, list[str], str]:
    """Path and query, values of headers and body of the first request, as they are sent."""
    parts = split_request(RequestMix(spec).templates[0])
    target = f"{parts.target.path.bind()(7)}?{parts.target.query.bind()(7)}"
    return target, [value.bind()(7) for _, value in parts.headers], parts.body.bind()(7) if parts.body else ""


@given(foreign=FOREIGN_TEXTS, is_json=st.booleans(), is_single=st.booleans())
@example(foreign='{"\\u007benv:HOME}":1}', is_json=True, is_single=False)
@example(foreign='{"{i}": ["{env:HOME}"]}', is_json=True, is_single=False)
def test_no_text_of_others_is_a_placeholder(*, foreign: str, is_json: bool, is_single: bool) -> None:
    """It is sent as it is, and the spec needs no variable; in a URL some braces are percent-encoded."""
    headers = [("X-Note", f"a{foreign}a")] + ([JSON] if is_json else [])
    in_url = foreign.replace('"', "")
    url = f"http://h/{in_url}?q={in_url}"
    request = ImportedRequest(url=url, method="POST", headers=headers, body=foreign)
    others = [] if is_single else [ImportedRequest(url="http://h/other")]
    text = write(request, *others)
    spec = parse(text)
    assert not list(list_secrets(spec))
    assert "allow-env" not in text
    target, values, body = read_request(msgspec.structs.replace(spec, targets=spec.targets[:1]))
    assert unquote(target) == unquote(url.removeprefix("http://h"))
    assert f"a{foreign}a" in values
    assert body == foreign or (is_json and msgspec.json.decode(body) == json.loads(foreign))


def test_a_person_is_told_what_is_escaped() -> None:
    """In one line with each place once, and many places are summed up."""
    request = ImportedRequest(
        url="http://h/?q={env:A}", method="PUT", headers=[("X-Note", "{i} {i}")], body="{file:a}{file:b}{i}"
    )
    line = (
        "# Text that looks like a placeholder is sent literally, because {literal:…} means {…}:"
        " in URLs, header X-Note, the body of PUT /."
    )
    assert line in write(request).splitlines()
    assert "placeholder" not in write(ImportedRequest(url="http://h/", body="{a}"))
    headers = [(f"X-{number}", "{i}") for number in range(9)]
    assert "header X-4 and 4 more." in write(ImportedRequest(url="http://h/", headers=headers))


def test_cookies_are_in_one_header() -> None:
    """Those that a person has to add stand behind the others."""
    credentials = [NeededCredential("Cookie", "a=", "A"), NeededCredential("Cookie", "b=", "B")]
    spec = parse(write(ImportedRequest(url="http://h/", credentials=credentials)))
    assert list(map(str, spec.headers)) == ["Cookie: a={env:IMPORTED_A}; b={env:IMPORTED_B}"]


def test_variables_have_names_that_nobody_else_chose() -> None:
    """A header or a scheme may be called as a variable that opens something else."""
    request = ImportedRequest(
        url="http://h/?aws_secret_access_key=a",
        headers=[("Github-Token", "b"), ("Authorization", "Bearer {env:HOME}"), ("Cookie", "a")],
        credentials=[
            NeededCredential("X-Key", "", "GITHUB_TOKEN"),
            NeededCredential("", "k{i}", "9"),
            NeededCredential("Cookie", "{i}=", "s"),
        ],
    )
    text = write(request)
    names = [
        "IMPORTED_AWS_SECRET_ACCESS_KEY", "IMPORTED_GITHUB_TOKEN", "AUTHORIZATION", "COOKIE",
        "IMPORTED_GITHUB_TOKEN_2", "IMPORTED_9", "IMPORTED_S",
    ]  # fmt: skip
    assert f"#   oku run {' '.join(f'--allow-env {name}' for name in names)} FILE" in text
    spec = parse(text)
    assert spec.urls == (f"http://h/?aws_secret_access_key={{env:{names[0]}}}&k%7Bi%7D={{env:IMPORTED_9}}",)
    assert list(map(str, spec.headers))[-2:] == [
        "X-Key: {env:IMPORTED_GITHUB_TOKEN_2}", "Cookie: {env:COOKIE}; {literal:i}={env:IMPORTED_S}",
    ]  # fmt: skip


def test_one_request_has_the_short_form() -> None:
    """Its settings stand below it, its comments above."""
    request = ImportedRequest(
        url="http://h/{a}?q={b}",
        headers=[("Cookie", "a"), ("X-I", "1")],
        body="x",
        method="PUT",
        statuses=[201],
    )
    text = write(request, settings={"timeout": "5s"}, notes=["Two\nlines"])
    assert text.splitlines()[:2] == ["# Made by oku import curl.", "# Two?lines"]
    assert "#   oku run --allow-env COOKIE FILE" in text
    spec = parse(text)
    assert spec.urls == ("http://h/%7Ba%7D?q=%7Bb%7D",)
    assert (spec.method, spec.body, spec.timeout_s) == ("PUT", "x", 5.0)
    assert list(map(str, spec.headers)) == ["Cookie: {env:COOKIE}", "X-I: 1"]
    assert list(map(str, spec.expect_status)) == ["201"]


def test_several_requests_are_targets() -> None:
    """With names of their own, weights without a common divisor, and what they share at the top."""
    shared = ("Accept", "a")
    spec = parse(
        write(
            ImportedRequest(url="http://h/a", weight=4, headers=[shared]),
            ImportedRequest(url="http://h/a?x", weight=2, headers=[shared, ("X", "1")]),
            ImportedRequest(
                url="http://other/", weight=6, headers=[shared], statuses=[200, 404], method="HEAD"
            ),
        )
    )
    assert spec.base_url == "http://h"
    assert list(map(str, spec.headers)) == ["Accept: a"]
    assert [(each.name, each.weight, each.url) for each in spec.targets] == [
        ("GET /a", 2, "/a"),
        ("GET /a (2)", 1, "/a?x"),
        ("HEAD /", 3, "http://other/"),
    ]
    assert list(map(str, spec.targets[1].headers)) == ["X: 1"]
    assert list(map(str, spec.targets[2].expect.status)) == ["200", "404"]
    # A base may have a path. Only URLs below it are shortened.
    urls = ("http://h/v1", "http://h/v1/a", "http://h/v10/a", "http://h/v1?x")
    spec = parse(write(*(ImportedRequest(url=url) for url in urls), base="http://h/v1"))
    assert [target.url for target in spec.targets] == ["/", "/a", "http://h/v10/a", "?x"]
    # The rarest are left out of too many. A spec has at most 100 targets, with weights of at most 1,000.
    requests = [ImportedRequest(url=f"http://h/{place}", weight=place) for place in range(1, 110)]
    text = write(*requests, ImportedRequest(url="http://h/all", weight=7919))
    spec = parse(text)
    assert len(spec.targets) == 100
    assert spec.targets[-1].weight == 1000
    assert "10 requests that were the rarest are left out" in text


def test_a_body_with_the_mark_of_a_file_is_not_read_from_one() -> None:
    """A recorded body names no file of whoever runs the spec."""
    request = ImportedRequest(url="http://h/", method="POST", body="@secret.txt")
    single, several = (decode_yaml(write(*[request] * count).encode(), SPEC_FILE) for count in (1, 2))
    assert single["body"] == "@@secret.txt"
    assert [target["body"] for target in several["targets"]] == ["@@secret.txt"] * 2
    assert read_files([Source("spec.yaml", single)]).sources[0].values["body"] == "@secret.txt"
    # User and password of a proxy are not in the file. They are named as those of a URL are.
    text = write(ImportedRequest(url="http://h/"), settings={"proxy": "http://me:pw@proxy:3128"})
    assert parse(text).proxy == "http://{env:URL_USER}:{env:URL_PASSWORD}@proxy:3128"
    assert "--allow-env URL_USER --allow-env URL_PASSWORD" in text
