"""Checks the command lines in the documents: each command, option and task that they name exists.

A command line is inline code that begins with `oku` or `./task`, or a line of a block of shell. Options in
the text, such as `--url`, have to be those of some command; decisions may name those that were not taken.
"""

import re
import shlex
from collections.abc import Iterator, Sequence
from functools import cache

import click
import yaml
from docs.tools.references import ROOT, list_documents

from oku_cli.main import COMMANDS, oku

_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"`((?:oku|\./task) [^`]+)`")
_OPTION = re.compile(r"`(--[a-z][\w-]*)")
_COMMENT = re.compile(r"(?:^|\s)#\s.*$", re.MULTILINE)
_CONTINUATION = re.compile(r"\\\n\s*")
_SEPARATORS = "();<>|&\n"
_SHELL = ("sh", "bash")
_IMAGE = re.compile(r"(?:[\w.]+/)*oku(?::[\w.$]+)?")
_PLACEHOLDER = re.compile(r"…|\.\.\.|[A-Z][A-Z_]*…?")
TASKS = frozenset(yaml.safe_load((ROOT / "Taskfile.yml").read_text())["tasks"])


def find_faults() -> list[str]:
    """What the command lines of the documents name and what does not exist, one line each."""
    return [
        f"{path.relative_to(ROOT)}: {fault}"
        for path in list_documents()
        for fault in check(path.read_text(), is_decision=path.parent.name == "decisions")
    ]


def check(text: str, *, is_decision: bool = False) -> Iterator[str]:
    """The faults of the command lines and options of a document."""
    blocks = [content for language, content in _BLOCK.findall(text) if language in _SHELL]
    inline = _INLINE.findall(_BLOCK.sub("", text))
    for words in (words for source in (*blocks, *inline) for words in split_commands(source)):
        if fault := _find_fault(words):
            yield f"{shlex.join(words)}: {fault}"
    if not is_decision:
        for name in dict.fromkeys(_OPTION.findall(_BLOCK.sub("", text))):
            if not any(_find_option(command, name) for command in _load_commands()):
                yield f"no command of oku has an option {name}"


def split_commands(source: str) -> Iterator[Sequence[str]]:
    """The words of each command in a piece of shell."""
    lexer = shlex.shlex(
        _CONTINUATION.sub(" ", _COMMENT.sub("", source)), posix=True, punctuation_chars=_SEPARATORS
    )
    lexer.whitespace, lexer.whitespace_split, lexer.commenters = " \t", True, ""
    words: list[str] = []
    for token in [*lexer, "\n"]:
        if not set(token) <= set(_SEPARATORS):
            words.append(token)
        elif words:
            yield words
            words = []


def _find_fault(words: Sequence[str]) -> str:
    words = list(words)
    while words and re.match(r"\w+=", words[0]):
        words.pop(0)
    match words:
        case ["./task", ("run" | "oku") as task, *rest]:
            arguments = [word for word in rest if word != "--"]
            return _check_oku(["run", *arguments] if task == "run" else arguments)
        case ["./task", task, *_]:
            known = task in TASKS or task.startswith("-") or _PLACEHOLDER.fullmatch(task)
            return "" if known else f"there is no task {task}"
        case [("oku" | "uvx" | "pipx" | "docker" | "podman") as program, *rest]:
            return _check_oku(_skip_launcher(program, rest))
    return ""


def _skip_launcher(program: str, words: Sequence[str]) -> Sequence[str]:
    """What follows `oku` in `uvx oku …`, `pipx run oku …` and `docker run … oku …`."""
    if program == "oku":
        return words
    if program != "uvx" and words[:1] != ["run"]:
        return ()
    return next((words[i + 1 :] for i, word in enumerate(words) if _IMAGE.fullmatch(word)), ())


def _check_oku(words: Sequence[str]) -> str:
    """What is wrong with the words after `oku`."""
    command: click.Command = oku
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word == "--":
            break
        if word.startswith("-") and word != "-":
            name = word.partition("=")[0] if word.startswith("--") else word[:2]
            option = _find_option(command, name)
            if option is None:
                return f"oku {command.name} has no option {name}" if command is not oku else f"no {name}"
            if not option.is_flag and word == name:
                del rest[:1]
        elif isinstance(command, click.Group) and not _PLACEHOLDER.fullmatch(word):
            found = command.get_command(click.Context(command), word)
            if found is None:
                return f"there is no command {word}"
            command = found
    return ""


@cache
def _load_commands() -> Sequence[click.Command]:
    context = click.Context(oku)
    return [oku, *(command for name in COMMANDS if (command := oku.get_command(context, name)))]


def _find_option(command: click.Command, name: str) -> click.Option | None:
    parameters = command.get_params(click.Context(command))
    options = (option for option in parameters if isinstance(option, click.Option))
    return next((option for option in options if name in (*option.opts, *option.secondary_opts)), None)
