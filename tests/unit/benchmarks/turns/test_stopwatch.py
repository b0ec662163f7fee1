import os
from pathlib import Path

from oku_benchmarks.turns.stopwatch import Command, Timing, time_command


class CountedTarget:
    """A target that has received so many requests, one more at each look."""

    url = ""

    def __init__(self) -> None:
        self._served = 0

    def read_served(self) -> int:
        """How many it has received."""
        self._served += 1
        return self._served


def time_script(script: str, folder: Path) -> Timing:
    """Time a script of the shell whose result is the word `result`."""
    command = Command(
        words=["sh", "-c", script],
        folder=folder,
        environment={"PATH": os.defpath, "WORD": "result"},
        result="the result",
    )
    return time_command(command, CountedTarget())


def test_the_result_is_found_between_the_colours_of_a_terminal(tmp_path: Path) -> None:
    """A program that colours what it writes has its result on the screen all the same."""
    timing = time_script("""test -t 1 && printf 'the \\033[1;32m%s\\033[0m' "$WORD" && exit 3""", tmp_path)

    assert timing.result_s is not None
    assert timing.result_s <= timing.prompt_s
    assert timing.exit_code == 3


def test_a_command_without_a_result_has_no_time_of_it(tmp_path: Path) -> None:
    """What never stood on the screen has no time; the first request and the prompt have theirs."""
    timing = time_script("echo no result", tmp_path)

    assert timing.result_s is None
    assert timing.first_request_s is not None
    assert timing.exit_code == 0
    assert timing.requests > 0


def test_a_result_at_the_end_of_much_output_is_seen(tmp_path: Path) -> None:
    """What a command writes last is read to its end, although the command has ended."""
    timing = time_script("""printf '%030000d' 0; echo "the $WORD" """, tmp_path)

    assert timing.result_s is not None
