from oku_core.data.data_format import DataFormat
from oku_core.spec.data_file import DataFile
from oku_core.spec.request_line import RequestLines
from oku_core.spec.spec import Engine, Spec
from oku_core.spec.target import Target
from oku_core.spec.values.code_file import CodeFile
from oku_core.spec.values.url import Url

DATA = DataFile(
    name="t.csv", format=DataFormat.CSV, digest="0" * 64, size=9, rows=9, columns=("a", "b"), index="1" * 64
)


def test_a_url_has_the_index_and_the_values_of_its_row_as_they_are_sent() -> None:
    """User and password are masked, names of secrets stay."""
    lines = RequestLines(Spec(urls=(Url("http://me:pw@h/{i}/{a}?b={b}&t={env:T}"),), data=DATA, method="PUT"))
    line = lines.build(7, {"a": "x y/é", "b": "&"})
    assert line.text == "PUT http://***@h/7/x%20y%2F%C3%A9?b=%26&t={env:T}"


def test_without_its_row_the_columns_stay_as_they_are_written() -> None:
    """The index is filled in."""
    spec = Spec(base_url=Url("http://h"), targets=(Target(name="t", url="/{i}?q={a}"),), data=DATA)
    assert RequestLines(spec).build(3) == ("t", "GET", "http://h/3?q={a}")


def test_what_stands_in_a_query_can_be_hidden() -> None:
    """But for placeholders, and for the names of parameters."""
    url = "http://h/{i}?token=abc&q=a{i}&c={a}&t={env:T}&e=&flag"
    spec = Spec(urls=(Url(url),), data=DATA)
    hidden = RequestLines(spec, hides_queries=True).build(7).url
    assert hidden == "http://h/7?token=***&q=***7&c={a}&t={env:T}&e=&***"


def test_literal_text_is_shown_as_it_is_sent_and_hidden_as_text() -> None:
    """It is no placeholder."""
    spec = Spec(urls=(Url("http://h/{literal:i}?q={literal:env:T}"),))
    assert RequestLines(spec).build(7).url == "http://h/{i}?q={env:T}"
    assert RequestLines(spec, hides_queries=True).build(7).url == "http://h/{i}?q=***"


def test_delay_servers_have_no_url() -> None:
    """They are gone when somebody asks."""
    assert RequestLines(Spec()).build(3, {"a": "1"}) == ("", "GET", "")
    assert RequestLines(Spec()).find_target(3) == ""


def test_nothing_is_said_of_what_an_iteration_of_user_code_asks() -> None:
    """Nobody knows, even where its requests go to one place."""
    scenario = CodeFile(f"a.py@sha256:{'0' * 64}:1:a.py")
    lines = RequestLines(Spec(engine=Engine.PYTHON, scenario=scenario, base_url=Url("http://h")))
    assert lines.build(7) == ("", "", "")
    assert not lines.build(7).text
    assert not lines.find_target(7)
