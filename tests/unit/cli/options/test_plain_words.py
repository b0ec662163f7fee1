"""What completion offers is put into a command line as it is, and Enter runs that."""

import shlex
from pathlib import Path

import click
import pytest
from click.shell_completion import CompletionItem, ShellComplete
from hypothesis import given
from hypothesis import strategies as st
from tests.kit.coordinators.fresh_ledger import open_ledger
from tests.kit.coordinators.transactions import change

from oku_cli.main import COMMANDS, oku
from oku_cli.options.plain_words import is_plain_word, keep_plain_words
from oku_coordinator.ledger.rules.lifecycle import change_state, create_run
from oku_core.accounting.run_state import RunState
from oku_core.spec.spec import Spec

HOSTILE = (
    "$(touch pwned)", "`id`", "${PATH}", "$PATH", "a;id", "a|id", "a&id", "a>b", "a<b", "a b", "a\tb",
    "a\nplain,b", "*", "a?", "[a]", "{a,b}", "!1", "^a^b", "~root", "=ls", "#a", "'a", '"a', "a\\", "(a)",
    "-rf", "--all", "", "a\u2028b", "a\x1b[2J",
)  # fmt: skip
PLAIN = ("cart", "auth:login", "a-b_c.d", "@orders/new.json", "@~/new.json", "/etc/a", "50%", "größe", "購入")
LOCUSTFILE = "from locust import HttpUser, tag\nclass Buyer(HttpUser):\n" + "".join(
    f"  @tag({text!r})\n  def f{number}(self): pass\n" for number, text in enumerate((*HOSTILE, *PLAIN))
)


def test_what_a_shell_would_take_apart_is_no_plain_word() -> None:
    """Nor is what it would replace, and what a command would take for a flag."""
    assert [text for text in HOSTILE if is_plain_word(text)] == []
    assert [text for text in PLAIN if not is_plain_word(text)] == []


@given(st.text(st.characters(codec="ascii")))
def test_a_plain_word_needs_no_quotes(text: str) -> None:
    """Python would put none around it either."""
    if is_plain_word(text):
        assert shlex.quote(text.replace("@~/", "@/")) == text.replace("@~/", "@/")
        assert not text.startswith(("-", "~", "="))


def test_files_that_the_shell_completes_are_left_to_it() -> None:
    """It quotes them; the item is only what the user has typed."""
    items = [CompletionItem("$(a", type="file"), CompletionItem("a b", type="dir"), CompletionItem("$(a)")]
    assert [item.type for item in keep_plain_words(items)] == ["file", "dir"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where runs, files, tags and modules have names of somebody else's."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "locustfile.py").write_text(LOCUSTFILE)
    for text in HOSTILE:
        if text and "/" not in text:
            (tmp_path / text).write_text("")
    data = tmp_path / ".oku"
    data.mkdir(mode=0o700)
    ledger = open_ledger(data / "ledger.sqlite3")
    for number, text in enumerate((*HOSTILE, "nightly")):
        change(ledger, create_run, f"261101-{number:04}", Spec(requests=5, name=text), float(number))
        change(ledger, change_state, f"261101-{number:04}", RunState.CANCELLED, 10.0)
    ledger.close()
    return tmp_path


def list_offered(*words: str) -> list[CompletionItem[str]]:
    """What a shell offers for the last of these words."""
    return ShellComplete(oku, {}, "oku", "_OKU_COMPLETE").get_completions([*words[:-1]], words[-1])


def test_no_parameter_of_any_command_offers_anything_else(folder: Path) -> None:
    """Own words and foreign ones, whatever was typed of them."""
    offered = set()
    with click.Context(oku) as context:
        commands = {name: oku.get_command(context, name) for name in COMMANDS}
    for name, command in commands.items():
        assert command is not None
        flags = [
            [each.opts[0]] for each in command.params if isinstance(each, click.Option) and not each.is_flag
        ]
        before = ["locustfile.py"] if name == "run" else []
        for words in ([], *flags):
            for begun in ("", "@"):
                for item in list_offered(name, *before, *words, begun):
                    assert (item.help or "").isprintable()
                    if item.type == "plain":
                        assert is_plain_word(item.value), (name, words)
                        offered.add(item.value)
    assert offered >= {"cart", "auth:login", "Buyer", "nightly", "latest", "261101-0000", "@locustfile.py"}
    assert not offered & set(HOSTILE)
