from oku.host import explain_leaving
from oku_core.process.redaction import hide
from oku_core.user_code.messages import Leaving


class SilentError(Exception):
    """Says nothing."""


def test_a_host_says_which_exception_ends_it() -> None:
    """In one line of bounded length."""
    cases = [
        (SystemExit(3), Leaving("it called sys.exit(3)")),
        (SystemExit(), Leaving("it called sys.exit(None)")),
        (SystemExit("no token"), Leaving("it called sys.exit('no token')")),
        (ValueError("one\n two"), Leaving("it failed: ValueError: one two")),
        (SilentError(), Leaving("it failed: SilentError")),
        (
            MemoryError(),
            Leaving("it reached its memory limit and could not go on (MemoryError)", is_memory=True),
        ),
    ]
    assert [explain_leaving(error) for error, _ in cases] == [leaving for _, leaving in cases]
    assert len(explain_leaving(ValueError("x" * 10_000)).text) < 200


def test_no_part_of_a_secret_is_left_where_a_text_is_cut() -> None:
    """It is masked before."""
    hide("exit-hunter2-0815")
    for error in (ValueError("x" * 110 + "exit-hunter2-0815"), SystemExit("x" * 110 + "exit-hunter2-0815")):
        assert "exit" not in explain_leaving(error).text.replace("sys.exit", "")
