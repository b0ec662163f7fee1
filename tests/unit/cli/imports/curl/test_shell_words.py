import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oku_cli.imports.curl.shell_words import split_words


@given(st.lists(st.text(st.characters(exclude_characters="\0")), max_size=5))
def test_quoted_words_come_back(words: list[str]) -> None:
    """Whatever is in them."""
    assert split_words(" ".join(map(shlex.quote, words))) == words


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("curl \\\n  -H 'a: b' \\\r\n  http://h/", ["curl", "-H", "a: b", "http://h/"]),
        (r"a\ b 'c'\''d' \"e", ["a b", "c'd", '"e']),
        (r"$'it\'s\n\t\x41\u00e9\101\\'", ["it's\n\tAéA\\"]),
        (r"$'\xe2\x82\xac' $'\342\202\254' $'\342\x82\254\u20ac\U1F600'", ["€", "€", "€€😀"]),
        (r"$'\ud83d\ude00\u0021'", ["😀!"]),
        (r"$'\cA\c?\c[\e\a\?\"\q\x\c'", ['\1\x7f\x1b\x1b\a?"\\q\\x\\c']),
        ("a\\\nb \\\n c", ["ab", "c"]),
        ("a#b # ' is not open\n\n", ["a#b"]),
        (r'"a \"b\" \$c \\ \d"', ['a "b" $c \\ \\d']),
        ('"a\\\nb"', ["ab"]),
        ("''  \"\"", ["", ""]),
        ("a'b'\"c\"d", ["abcd"]),
        ("costs 5$ $", ["costs", "5$", "$"]),
    ],
)
def test_words_are_those_of_bash(command: str, words: list[str]) -> None:
    """As browsers write them, too."""
    assert split_words(command) == words


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("curl 'a", "a quote is not closed"),
        ('curl "a', "a quote is not closed"),
        ("curl $'a", "a quote is not closed"),
        ("curl $HOME/x", "HOME/x stands for something that only the shell knows"),
        ('curl "$HOME"', "in double quotes stands for something"),
        ("curl `pwd`", "`pwd` stands for something"),
        ("curl a | jq", r"\| is for the shell"),
        ("curl a > b", "> is for the shell"),
        ("curl a &", "& is for the shell"),
        ("curl a\\", "it ends with a backslash"),
        (r"curl $'\ud800'", r"\\ud800 is not text in UTF-8"),
        (r"curl $'\xe4'", r"\\xe4 is not text in UTF-8"),
        (r"curl $'a\0b'", "has a NUL, where bash ends the word"),
        (r"curl $'\U110000'", "is not text in UTF-8"),
        ("curl $$ $?", r"\$\$ stands for something"),
        ('curl "$$"', r"\$\$ in double quotes stands for something"),
        ("curl a\ncurl b", "the command ends with its line"),
        ("curl a `\n -s", "for PowerShell: copy the command as cURL"),
    ],
)
def test_what_only_a_shell_knows_is_refused(command: str, message: str) -> None:
    """Nothing is expanded or run."""
    with pytest.raises(ValueError, match=message):
        split_words(command)
