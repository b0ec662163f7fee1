from oku.host.exit_reason import explain_leaving
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
