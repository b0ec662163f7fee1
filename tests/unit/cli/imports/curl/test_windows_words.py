import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oku_cli.imports.curl.shell_words import split_words


def quote_as_chrome(text: str) -> str:
    """A word as Chrome copies it for cmd.exe, from its source (`escapeStringWin`)."""
    text = text.replace("\\", "\\\\").replace('"', '\\"')
    text = re.sub(r"[^a-zA-Z0-9\s_\-:=+~'/.,?;()*`]", r"^\g<0>", text)
    text = re.sub(r"%(?=[a-zA-Z0-9_])", "%^", text)
    return '^"' + re.sub(r"\r?\n|\r", "^\n\n", text) + '^"'


@given(st.lists(st.text("aB1 \"^&|<>%!$'`{}[]();,=@#~é\n"), min_size=1, max_size=5), st.booleans())
def test_words_of_browsers_come_back(words: list[str], has_returns: bool) -> None:  # noqa: FBT001
    """What a browser copies for cmd.exe, however lines end."""
    command = " ^\n  ".join(["curl", *map(quote_as_chrome, words)])
    assert split_words(command.replace("\n", "\r\n") if has_returns else command) == ["curl", *words]


def test_words_are_those_of_windows() -> None:
    """Carets are for cmd.exe, backslashes before quotes for the program."""
    cases = {
        'curl ^"a\\^"b^" ^\n c^&d': ["curl", 'a"b', "c&d"],
        'curl ^\n "a^b" ""': ["curl", "a^b", ""],
        'curl ^\n "a ""b"" c" d': ["curl", 'a "b" c', "d"],
        'curl ^\n a\\b "c\\\\" \\"': ["curl", "a\\b", "c\\", '"'],
        'curl ^"%^20 %^NAME% 100%^"': ["curl", "%20 %NAME% 100%"],
        'curl ^"a%C3%A4b%20^"': ["curl", "a%C3%A4b%20"],
    }
    assert {command: split_words(command) for command in cases} == cases


def test_what_means_something_else_is_refused() -> None:
    """Rather than that another request is made than the one that was copied."""
    cases = {
        'curl ^"a^" -H %TOKEN%': "%TOKEN% stands for something that only the shell knows",
        "curl ^\n a | more": "| is for the shell",
        "curl ^\n a\n b": "a line does not end with ^: copy the command as cURL (bash)",
        'curl "h?a^&b" ^\n -s': "^ in double quotes is sent as it is by cmd.exe",
        'curl ^\n ^"a^\\^\\n^"': "\\\\ is sent as two by curl.exe",
        'curl ^\n "a': "a quote is not closed",
    }
    for command, message in cases.items():
        with pytest.raises(ValueError, match=re.escape(message)):
            split_words(command)
