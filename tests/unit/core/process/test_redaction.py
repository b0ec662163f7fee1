import pytest
from hypothesis import given
from hypothesis import strategies as st

from oku_core.process.redaction import LONGEST_REDACTED, MASK, hide, redact, redact_beginning


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("no URL, but a@b and a?b=c", "no URL, but a@b and a?b=c"),
        ("http://h:80/path/{i} is asked", "http://h:80/path/{i} is asked"),
        (
            "listening on http://h:80, 2 processes; http://me:p,w@h, too",
            "listening on http://h:80, 2 processes; http://***@h, too",
        ),
        ("http://[::1]:80/ and https://h", "http://[::1]:80/ and https://h"),
        ("400, message='no', url='http://h/x?token=abc&a=b#c'", "400, message='no', url='http://h/x?***'"),
        ("redis://:secret@h:6379/0: refused", "redis://***@h:6379/0: refused"),
        ("amqp://me:secret@h//", "amqp://***@h//"),
        ("http://token@h/x?y", "http://***@h/x?***"),
        ("redis://:p@ss@h/0", "redis://***@h/0"),
        ("redis://:p/w?r#d@h/0", "redis://***"),
        ("http://h/?mail=a@b", "http://***"),
        ("http://h/users/@me", "http://***@me"),
        ("cut in the middle: http://me:secr", "cut in the middle: http://***"),
        ("://, without a scheme: ://me:secret@h", "://, without a scheme: ://***@h"),
        ("with two: a://b://c:d@e", "with two: a://***@e"),
        ('two: "http://a:b@c" <https://d:e@f?g>', 'two: "http://***@c" <https://***@f?***>'),
    ],
)
def test_users_passwords_and_queries_are_hidden(text: str, redacted: str) -> None:
    """This holds wherever a URL occurs in a text."""
    assert redact(text) == redacted
    assert redact(redacted) == redacted


def test_queries_may_stay() -> None:
    """They may stay in an answer to the user who has just written them."""
    assert redact("http://me:pw@h/?a={x} is wrong", queries=False) == "http://***@h/?a={x} is wrong"


@given(st.text("abc:/?#@[]% \\", max_size=20), st.sampled_from(["redis", "http", "amqps"]))
def test_no_part_of_a_password_is_left(password: str, scheme: str) -> None:
    """This holds however it is encoded, because a part of a secret is secret, too."""
    secret = "".join(char.replace("a", "Q").replace("b", "W").replace("c", "Z") for char in password)
    shown = redact(f"{scheme}://me:{secret}@host.example:1/x")
    assert " " in secret or not set("QWZ") & set(shown)


def test_a_long_text_is_truncated() -> None:
    """A URL at the cut is masked, because the cut may be within its password."""
    assert redact("a" * (LONGEST_REDACTED + 1)) == "a" * LONGEST_REDACTED
    begin = "b" * (LONGEST_REDACTED - 20)
    assert redact(f"{begin} http://12345678901234@h/") == f"{begin} http://{MASK}"
    assert redact(f"{begin} http://me:12345678,,@h/") == f"{begin} http://{MASK},"
    assert redact(f"{begin} http://h/ and some more") == f"{begin} http://h/ and some "


def test_no_part_of_a_hidden_value_is_left_where_a_long_text_is_truncated() -> None:
    """It is left out as a whole, also if values before it make the text shorter."""
    hide("long-hunter2-0815")
    for before in (LONGEST_REDACTED - 5, LONGEST_REDACTED - 5 - 17):
        text = redact("b" * before + "long-hunter2-0815" * 2 + " and more")
        assert set(text) <= {"b", "*"}


def test_the_rest_of_a_line_is_kept_for_what_follows() -> None:
    """A long line is read in pieces, and a hidden value may be in two of them."""
    hide("piece-hunter2-0815")
    text = "say piece-hunter2-0815 and piece-hunter2-0815!"
    for cut in range(len(text)):
        shown, rest = redact_beginning(text[:cut])
        assert shown + redact(rest + text[cut:]) == f"say {MASK} and {MASK}!"
        assert "hunt" not in shown
