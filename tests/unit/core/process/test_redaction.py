import base64
import html
import json
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from requests.utils import requote_uri
from yarl import URL

from oku_core.process.redaction import (
    LONGEST_REDACTED,
    MASK,
    SHORTEST_PART,
    SecretTexts,
    hide,
    redact,
    redact_beginning,
)

SECRET = 'it\'s a \\ "k&y"/ß+?='
SECRETS = st.text(
    st.characters(exclude_categories=["Cs", "Zs", "Zl", "Zp", "Cc"]), min_size=SHORTEST_PART, max_size=30
)


@given(SECRETS, st.text("ab\"' ", max_size=4))
@example(SECRET, "'\"")
def test_a_secret_is_found_in_every_form(secret: str, beside: str) -> None:
    """As URLs, Python, JSON and HTML write it, one within the other, and behind a user in Base64."""
    written = {"itself": secret, "json": json.dumps(secret), "text": json.dumps(secret, ensure_ascii=False)}
    written |= {"repr": repr(secret + beside), "bytes": repr(secret.encode()), "ascii": ascii(secret)}
    written |= {"url": quote(secret, safe=""), "path": quote(secret), "form": quote_plus(secret)}
    written |= {"json in url": quote(json.dumps(secret)), "html": html.escape(secret)}
    written |= {"Latin-1": secret.encode().decode("latin-1")}
    written |= {"hex": secret.encode().hex()}
    written |= {"host": secret.lower(), "text of XML": html.escape(secret, quote=False)}
    written |= {"JSON of PHP": json.dumps(secret).replace("/", "\\/")}
    for user in ("", "a:", "ab:", "abc:"):
        written[f"Base64 {user}"] = base64.b64encode(f"{user}{secret}".encode()).decode()
    texts = SecretTexts([secret])
    for form, text in written.items():
        masked = texts.replace(f"<{text}>", "\0")
        assert "\0" in masked, form
        assert text not in masked, form


@pytest.mark.parametrize("secret", [SECRET, "a/b c(d)=e+f%g", "x=y;z:'é'*", "p@ss word!$1,2", "~a.b~/c"])
def test_a_secret_is_found_in_urls_of_clients(secret: str) -> None:
    """Each client leaves other characters as they are; a URL may be in JSON, HTML or another URL."""
    urls = [str(URL.build(path=f"/{secret}")), str(URL("/") % {"token": secret}), requote_uri(f"/{secret}")]
    if "?" not in secret:
        urls += [str(URL(f"/{secret}")), str(URL(f"/?token={secret}"))]
    urls += [quote(secret, safe=safe) for safe in ("!'()*", ";,/?:@&=+$!'()*#")]
    texts = SecretTexts([secret])
    for url in urls:
        for text in (
            url,
            json.dumps(url),
            json.dumps(json.dumps(url)),
            html.escape(url),
            quote(url, safe=""),
        ):
            masked = texts.replace(text, "#")
            assert masked.strip('\\"') in ("/#", "#", "/?token=#", "%2F#", "%2F%3Ftoken%3D#"), (text, masked)


def test_a_secret_may_be_cut_off() -> None:
    """What is at the end of a text may be the beginning of one."""
    for text, begins in [
        ("x hunter2", 9),
        ("x hunter", 2),
        ("x h", 2),
        ("x hunting", 9),
        ("", 0),
        ("hunter2 hunt", 8),
    ]:
        assert SecretTexts(["hunter2"]).find_unfinished(text) == begins
    # Each form may be cut off. A half of it is as secret as a half of the secret.
    texts = SecretTexts([SECRET])
    for form in (quote(SECRET, safe=""), repr(SECRET)[1:-1], base64.b64encode(SECRET.encode()).decode()):
        for length in range(1, len(form)):
            assert texts.find_unfinished(f"x{form[:length]}") <= 1


def test_lines_and_short_secrets_are_found_as_words() -> None:
    """Each is printed by itself; the short ones are in any text."""
    texts = SecretTexts(["-- begin\r\n  first line  \n{\nab\nsecond line\n"])
    assert texts.replace("x first line y", "#") == "x # y"
    assert texts.replace("second line", "#") == "#"
    assert texts.replace("{ab}", "#") == "{ab}"
    # A short secret is a word. It would be found within other words.
    texts = SecretTexts(["ab", "7/"])
    assert texts.replace("ab", "#") == "ab"
    assert texts.replace_words("ab, cab, abc; 7/ 7%2F 17/ a", "#") == "#, cab, abc; # # 17/ a"
    assert SecretTexts(["abcd"]).replace_words("abcd", "#") == "abcd"
    # Without secrets nothing is done. So every text costs next to nothing.
    texts = SecretTexts()
    assert texts.replace("a", "#") == texts.replace_words("a", "#") == "a"
    assert texts.find_unfinished("a") == 1


def test_users_passwords_and_queries_are_hidden() -> None:
    """This holds wherever a URL occurs in a text."""
    for text, redacted in [
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
    ]:
        assert redact(text) == redacted
        assert redact(redacted) == redacted
    # Queries may stay. They may stay in an answer to the user who has just written them.
    assert redact("http://me:pw@h/?a={x} is wrong", queries=False) == "http://***@h/?a={x} is wrong"


@given(st.text("abc:/?#@[]% \\", max_size=20), st.sampled_from(["redis", "http", "amqps"]))
def test_no_part_of_a_password_is_left(password: str, scheme: str) -> None:
    """This holds however it is encoded, because a part of a secret is secret, too."""
    secret = "".join(char.replace("a", "Q").replace("b", "W").replace("c", "Z") for char in password)
    shown = redact(f"{scheme}://me:{secret}@host.example:1/x")
    assert " " in secret or not set("QWZ") & set(shown)


def test_no_part_of_a_secret_is_left_at_a_cut() -> None:
    """A URL at the cut is masked, because the cut may be within its password."""
    assert redact("a" * (LONGEST_REDACTED + 1)) == "a" * LONGEST_REDACTED
    begin = "b" * (LONGEST_REDACTED - 20)
    assert redact(f"{begin} http://12345678901234@h/") == f"{begin} http://{MASK}"
    assert redact(f"{begin} http://me:12345678,,@h/") == f"{begin} http://{MASK},"
    assert redact(f"{begin} http://h/ and some more") == f"{begin} http://h/ and some "
    # No part of a hidden value is left where a long text is truncated.
    hide("long-hunter2-0815")
    for before in (LONGEST_REDACTED - 5, LONGEST_REDACTED - 5 - 17):
        text = redact("b" * before + "long-hunter2-0815" * 2 + " and more")
        assert set(text) <= {"b", "*"}
    # The rest of a line is kept for what follows.
    hide("piece-hunter2-0815")
    text = "say piece-hunter2-0815 and piece-hunter2-0815!"
    for cut in range(len(text)):
        shown, rest = redact_beginning(text[:cut])
        assert shown + redact(rest + text[cut:]) == f"say {MASK} and {MASK}!"
        assert "hunt" not in shown
