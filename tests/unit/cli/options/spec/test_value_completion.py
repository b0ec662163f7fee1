import logging
from pathlib import Path

import pytest
from click.shell_completion import CompletionItem, ShellComplete

from oku_cli.main import oku


def complete(*arguments: str) -> list[CompletionItem[str]]:
    """What a shell offers for the last of these words."""
    return ShellComplete(oku, {}, "oku", "_OKU_COMPLETE").get_completions([*arguments[:-1]], arguments[-1])


def list_words(*arguments: str) -> list[str]:
    """Those words alone."""
    return [str(item.value) for item in complete(*arguments)]


def test_words_of_which_there_are_few_are_offered() -> None:
    """Engines, methods, arrivals, and what commands choose from."""
    assert list_words("run", "--arrivals", "p") == ["poisson"]
    assert list_words("run", "--engine", "") == ["aiohttp", "httptools", "nghttp2", "python", "locust"]
    assert list_words("run", "--engine", "h") == ["httptools"]
    assert list_words("run", "-m", "p") == ["POST", "PUT", "PATCH"]
    assert list_words("completion", "") == ["bash", "zsh", "fish"]
    assert "--grafana" in list_words("run", "--gra")


def test_completing_a_command_does_nothing_of_it() -> None:
    """The levels of logs are what they were."""
    before = logging.getLogger("oku_core").level
    assert list_words("worker", "--log-format", "json", "--log-level", "w") == ["warning"]
    assert logging.getLogger("oku_core").level == before


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "sp"),
        ("run", "--cacert", "sp"),
        ("run", "--scenario", "sp"),
        ("run", "--include", "sp"),
        ("run", "--summary-json", "sp"),
        ("run", "--loki-ca", "sp"),
        ("report", "latest", "-o", "sp"),
        ("report", "latest", "--csv", "sp"),
    ],
)
def test_files_are_left_to_the_shell(arguments: tuple[str, ...]) -> None:
    """It knows how to walk through folders."""
    assert [(item.value, item.type) for item in complete(*arguments)] == [("sp", "file")]


def test_names_of_a_locustfile_are_offered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the one that stands in the command; one that is not there, or not written to its end, has none."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.py").write_text(
        "from locust import HttpUser, tag\nclass Buyer(HttpUser):\n  @tag('cart')\n  def f(self): pass\n"
    )
    (tmp_path / "b.py").write_text("class (")
    assert list_words("run", "a.py", "--user-class", "") == ["Buyer"]
    assert list_words("run", "--scenario", "a.py", "--user-class", "B") == ["Buyer"]
    assert list_words("run", "a.py", "--user-class", "C") == []
    assert (
        list_words("run", "a.py", "--tag", "c") == list_words("run", "a.py", "--exclude-tag", "") == ["cart"]
    )
    for other in ("b.py", "none.py", "http://h/a.py"):
        assert list_words("run", other, "--user-class", "") == []


def test_folders_are_left_to_the_shell() -> None:
    """No files are offered for them."""
    assert [item.type for item in complete("show", "--data-dir", "d")] == ["dir"]


def test_the_file_of_a_body_is_offered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The only folder is opened at once, hidden files are offered to those who begin one, and nothing that a
    shell would run or take apart is.
    """
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bodies").mkdir()
    for name in ("one.json", "two.json", "two words", "$(id)"):
        (tmp_path / "bodies" / name).write_text("")
    for name in ("a.json", ".hidden"):
        (tmp_path / name).write_text("")
    assert list_words("run", "-d", "@") == ["@a.json", "@bodies/"]
    assert list_words("run", "-d", "@b") == ["@bodies/", "@bodies/one.json", "@bodies/two.json"]
    assert list_words("run", "--body", "@bodies/o") == ["@bodies/one.json"]
    assert list_words("run", "-d", "@.h") == ["@.hidden"]
    assert list_words("run", "-d", f"@{tmp_path}/a") == [f"@{tmp_path}/a.json"]
    assert list_words("run", "-d", "@nowhere/") == []
    assert list_words("run", "-d", "text") == []
