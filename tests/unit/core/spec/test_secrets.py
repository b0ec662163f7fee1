from pathlib import Path

import msgspec
import pytest

from oku_core.data.data_format import DataFormat
from oku_core.process.redaction import redact
from oku_core.spec.data_file import DataFile
from oku_core.spec.secrets import SecretError, SecretSource, list_secrets, reads_sources
from oku_core.spec.spec import Spec
from oku_core.spec.target import Target
from oku_core.spec.values.request_content import Header
from oku_core.spec.values.url import Url

HIDDEN = "hunter2-0815"


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SecretSource:
    """A source that allows one variable and one folder."""
    folder = tmp_path / "secrets"
    folder.mkdir()
    (folder / "key.txt").write_text("a&b/c d\n")
    monkeypatch.setenv("TOKEN", HIDDEN)
    monkeypatch.setenv("OTHER", HIDDEN)
    return SecretSource(("TOKEN", "UNSET", "EMPTY"), folder)


def refuse(source: SecretSource, spec: Spec) -> str:
    """Return why a spec cannot be filled in; the reason never shows a value."""
    with pytest.raises(SecretError) as caught:
        source.fill_in(spec)
    assert HIDDEN not in str(caught.value)
    return str(caught.value)


def test_values_replace_their_placeholders(source: SecretSource) -> None:
    """In a URL they are percent-encoded, elsewhere not; a line break that ends a file is dropped."""
    spec = Spec(
        urls=(Url("http://me:{file:key.txt}@h/{i}?t={env:TOKEN}"), Url("http://h/")),
        headers=(
            Header("A: Bearer {env:TOKEN}"),
            Header("B: {file:key.txt}{file:key.txt}"),
            Header("C: {i}"),
        ),
        body="{file:key.txt} {i} {x}",
        proxy=Url("http://{file:key.txt}@proxy:1"),
    )
    filled = source.fill_in(spec).spec
    assert filled.urls == (f"http://me:a%26b%2Fc%20d@h/{{i}}?t={HIDDEN}", "http://h/")
    assert filled.headers == (f"A: Bearer {HIDDEN}", "B: a&b/c da&b/c d", "C: {i}")
    assert filled.body == "a&b/c d {i} {x}"
    assert filled.proxy == "http://a%26b%2Fc%20d@proxy:1"
    assert set(list_secrets(spec)) == {"{env:TOKEN}", "{file:key.txt}"}
    # Values replace their placeholders in targets.
    assert source.folder is not None
    (source.folder / "quoted").write_text('a"b\\c\nd/ü')
    spec = Spec(
        base_url=Url("http://me:{file:key.txt}@h/{env:TOKEN}"),
        targets=(
            Target(
                name="{env:TOKEN}", url="/{file:key.txt}?{i}", body='{"{i}":"{file:quoted}"}', is_json=True,
                headers=(Header("A: {env:TOKEN}"),),
            ),
            Target(name="b", url="/", body="{file:quoted}"),
        ),
    )  # fmt: skip
    filled = source.fill_in(spec).spec
    first, second = filled.targets
    assert filled.base_url == f"http://me:a%26b%2Fc%20d@h/{HIDDEN}"
    assert (first.name, first.url, first.headers) == ("{env:TOKEN}", "/a%26b%2Fc%20d?{i}", (f"A: {HIDDEN}",))
    assert first.body == r'{"{i}":"a\"b\\c\nd/ü"}'
    assert second.body == 'a"b\\c\nd/ü'
    assert set(list_secrets(spec)) == {"{env:TOKEN}", "{file:key.txt}", "{file:quoted}"}


def test_a_spec_without_secrets_stays_as_it_is() -> None:
    """Nothing is read, and nothing has to be allowed."""
    spec = Spec(urls=(Url("http://h/{i}"),), headers=(Header("A: b"),), body="{env}")
    assert SecretSource().fill_in(spec).spec is spec
    assert not reads_sources(spec)
    assert reads_sources(Spec(body="{env:A}"))
    assert reads_sources(Spec(cacert="/ca.pem"))


def test_only_allowed_secrets_can_be_used(
    source: SecretSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever else the environment has, the error says how to allow it."""
    assert refuse(source, Spec(body="{env:OTHER}")) == (
        "{env:OTHER} is not allowed here: --allow-env OTHER allows it"
    )
    assert refuse(SecretSource(), Spec(headers=(Header("A: {file:x}"),))) == (
        "{file:x} is not allowed here: --secrets-dir FOLDER allows it"
    )
    (tmp_path / "outside").write_text(HIDDEN)
    (tmp_path / "secrets" / "link").symlink_to(tmp_path / "outside")
    assert refuse(source, Spec(body="{file:link}")).startswith("{file:link}: ")
    # A secret without a value is named.
    monkeypatch.setenv("EMPTY", "")
    assert refuse(source, Spec(body="{env:UNSET}")) == "{env:UNSET}: this variable is not set here"
    assert refuse(source, Spec(body="{env:EMPTY}")) == "{env:EMPTY}: its value is empty"
    assert refuse(source, Spec(body="{file:none}")) == "{file:none}: No such file or directory"


def test_no_value_makes_a_second_header(source: SecretSource) -> None:
    """The author of a secret must not be able to write requests."""
    for value in [f"{HIDDEN}\r\nX-Admin: 1", f"{HIDDEN}\nx", f"\x00{HIDDEN}", f"{HIDDEN}\x7f"]:
        assert source.folder is not None
        (source.folder / "bad").write_text(value)
        reason = refuse(source, Spec(headers=(Header("A: {file:bad}"),)))
        assert (
            reason == "{file:bad}: its value has a line break or control character, which no header may have"
        )
    for header in ["Content-Length: {file:n}", "Connection: {file:n}", "Expect: {file:n}"]:
        # No value changes the framing of a request. A value may not say what the spec itself may not say.
        assert source.folder is not None
        (source.folder / "n").write_text(HIDDEN)
        assert "headers contradict the body" in refuse(source, Spec(headers=(Header(header),)))
    # No value changes the framing of a target. Nor does it make a second header.
    assert source.folder is not None
    (source.folder / "n").write_text("7")
    target = Target(name="a", url="/", body="x", headers=(Header("Content-Length: {file:n}"),))
    assert "headers contradict the body" in refuse(source, Spec(targets=(target,)))
    (source.folder / "n").write_text("7\r\nX-Admin: 1")
    assert "has a line break" in refuse(source, Spec(targets=(target,)))


def test_a_value_is_not_a_template(source: SecretSource, monkeypatch: pytest.MonkeyPatch) -> None:
    """A value with `{i}` is refused, as the index would replace it; names in a value are not looked up."""
    assert source.folder is not None
    (source.folder / "index").write_text(f"{HIDDEN}{{i}}")
    (source.folder / "brace").write_text(f"{HIDDEN}{{literal:i}}")
    assert "has {literal: in it" in refuse(source, Spec(body="{file:brace}"))
    assert source.fill_in(Spec(body="{literal:env:OTHER}")).spec.body == "{literal:env:OTHER}"
    (source.folder / "name").write_text("{env:OTHER}")
    assert "has {i} in it" in refuse(source, Spec(body="{file:index}"))
    assert source.fill_in(Spec(body="{file:name}")).spec.body == "{env:OTHER}"
    (source.folder / "bytes").write_bytes(b"\xff")
    assert refuse(source, Spec(body="{file:bytes}")) == "{file:bytes}: its value is not UTF-8"
    # A value is not taken for a column.
    monkeypatch.setenv("TOKEN", f"{HIDDEN}{{sku}}")
    data = DataFile(
        name="d.csv", format=DataFormat.CSV, digest="0" * 64, size=9, rows=1, columns=("sku",), index="0" * 64
    )
    spec = Spec(urls=(Url("http://h/"),), headers=(Header("A: {env:TOKEN}"),), data=data)
    fault = "{env:TOKEN}: its value has braces in it, which would be taken for a column"
    assert refuse(source, spec) == fault
    without = source.fill_in(msgspec.structs.replace(spec, data=None)).spec
    assert without.headers == (Header(f"A: {HIDDEN}{{sku}}"),)


def test_values_do_not_appear_in_logs(source: SecretSource) -> None:
    """This holds for every form in which a library may show them."""
    assert source.folder is not None
    (source.folder / "odd").write_text("it's a \\ secret/ß")
    source.fill_in(Spec(body="{file:odd}{env:TOKEN}"))
    value = "it's a \\ secret/ß"
    for text in (value, repr(value), "it%27s%20a%20%5C%20secret%2F%C3%9F", f"x{HIDDEN}y"):
        assert "secret" not in redact(text)
        assert HIDDEN not in redact(text)
    # An allowed variable that user code sees is hidden too.
    visible = source.find_visible({"TOKEN": HIDDEN, "OTHER": "x", "EMPTY": "else", "UNSET": ""})
    assert visible == (HIDDEN,)
    assert source.find_visible({}) == ()
    assert source.fill_in(Spec(body="{env:TOKEN}{file:key.txt}")).secrets == ("a&b/c d", HIDDEN)
