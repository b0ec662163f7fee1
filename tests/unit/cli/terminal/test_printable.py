import json
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from oku_cli.terminal.printable import escape_json, make_printable

STEERS = {"Cc", "Cs", "Zl", "Zp"}
TURNS = {"RLO", "LRO", "RLE", "LRE", "PDF", "RLI", "LRI", "FSI", "PDI"}


@given(st.text())
def test_what_steers_a_terminal_becomes_one_sign_each(text: str) -> None:
    """None of it is left, and everything else stays where it was."""
    shown = make_printable(text)

    assert len(shown) == len(text)
    assert not any(unicodedata.category(character) in STEERS for character in shown)
    assert not TURNS.intersection(map(unicodedata.bidirectional, shown))
    assert all(
        before == after or unicodedata.category(before) in {*STEERS, "Cf", "Cn"}
        for before, after in zip(text, shown, strict=True)
    )


def test_names_in_any_script_stay_as_they_are() -> None:
    """Joiners of emoji and scripts are invisible, harmless, and stay."""
    for text in ("億 run", "नमस्\u200dते", "👩\u200d💻", "a\u00a0b", "[red]x[/red] :smile:"):
        assert make_printable(text) == text


@given(st.text(st.characters(codec="utf-8")))
def test_json_means_the_same_to_a_program(text: str) -> None:
    """Only its notation differs; line breaks between its parts stay."""
    document = json.dumps({"name": text, "n": 1}, ensure_ascii=False, indent=1)
    escaped = escape_json(document.encode()).decode()
    assert json.loads(escaped) == {"name": text, "n": 1}
    assert make_printable(escaped.replace("\n", "")) == escaped.replace("\n", "")
    # Json in ascii means the same to a program. Whatever it takes its input for.
    in_ascii = escape_json(document.encode(), is_ascii=True)
    assert json.loads(in_ascii.decode("ascii")) == {"name": text, "n": 1}
