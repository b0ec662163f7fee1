import json
import logging
import sys
from enum import StrEnum

import pytest

from oku_cli.process.log_line import JsonFormatter, TextFormatter


class Reason(StrEnum):
    """A reason of the kind that Oku logs."""

    LOST = "worker_lost"


def build_record(message: str = "a sentence", **changes: object) -> logging.LogRecord:
    """Build a record with context, as `logging` does."""
    fixed = {
        "name": "oku_workers.broker.lease_task",
        "levelname": "WARNING",
        "created": 1769965512.0456,
        "process": 4711,
    }
    return logging.makeLogRecord({"msg": message, **fixed, **changes})


def catch() -> object:
    """Return a caught error in the form that `logging` takes."""
    try:
        raise ValueError("two\nlines \x1b[2J")
    except ValueError:
        return sys.exc_info()


def read(record: logging.LogRecord) -> dict[str, object]:
    """The object that a record becomes."""
    line = JsonFormatter().format(record)
    assert line.isascii()
    assert "\n" not in line
    document: dict[str, object] = json.loads(line)
    return document


def write(record: logging.LogRecord) -> str:
    """The text that a record becomes."""
    return TextFormatter().format(record)


def test_json_has_sentence_and_context() -> None:
    """The time is in UTC to the millisecond; run, lease and worker precede all other context."""
    record = build_record(
        "lease %s is lost: %d",
        args=("r.1", 3),
        requests=3,
        worker="w1",
        lease="r.1",
        run="r",
        reason=Reason.LOST,
    )
    assert list(read(record).items()) == [
        ("time", "2026-02-01T17:05:12.045Z"),
        ("level", "warning"),
        ("logger", "oku_workers.broker.lease_task"),
        ("message", "lease r.1 is lost: 3"),
        ("run", "r"),
        ("lease", "r.1"),
        ("worker", "w1"),
        ("requests", 3),
        ("reason", "worker_lost"),
        ("pid", 4711),
    ]


def test_json_has_an_error_in_one_field() -> None:
    """The field has the whole traceback."""
    error = read(build_record(exc_info=catch()))["error"]
    assert isinstance(error, str)
    assert error.startswith("Traceback (most recent call last):\n")
    assert error.endswith("ValueError: two\nlines \x1b[2J")


def test_json_says_where_a_line_comes_from_when_asked() -> None:
    """It is the `stack_info` of `logging`."""
    assert read(build_record(stack_info="Stack:\n  here"))["error"] == "Stack:\n  here"


def test_text_has_sentence_and_context() -> None:
    """The line has everything but the process id."""
    record = build_record(
        "lease %s is lost: %d", args=("r.1", 3), requests=3, worker="w 1", lease="r.1", run="r"
    )
    assert write(record) == (
        "2026-02-01T17:05:12.045Z warning  lease r.1 is lost: 3 "
        'run=r lease=r.1 worker="w 1" requests=3 logger=oku_workers.broker.lease_task'
    )


def test_text_ends_with_the_error() -> None:
    """The last line of a traceback is what a reader looks for first."""
    lines = write(build_record(exc_info=catch())).splitlines()
    assert lines[0].endswith("a sentence logger=oku_workers.broker.lease_task")
    assert lines[1] == "Traceback (most recent call last):"
    assert lines[-2:] == ["ValueError: two", r"lines \x1b[2J"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain", "plain"),
        ("höhle", "höhle"),
        ("", '""'),
        ("a=b", '"a=b"'),
        ('say "x"', r'"say \"x\""'),
        ("a\nb", r'"a\nb"'),
        ("a\u2028b\x85", r'"a\u2028b\x85"'),
        (0.5, "0.5"),
    ],
)
def test_text_quotes_what_is_not_a_single_word(value: object, text: str) -> None:
    """Each field can be cut out of its line."""
    assert write(build_record(worker=value)).endswith(f" worker={text} logger=oku_workers.broker.lease_task")


def test_what_others_wrote_begins_no_line_of_text() -> None:
    """A path may hold anything."""
    record = build_record("GET %s\n", args=("/a\n2026-02-01T17:05:12.045Z error forged\x1b[A",))
    assert r" GET /a 2026-02-01T17:05:12.045Z error forged\x1b[A logger=" in write(record)


def test_what_is_not_a_plain_value_is_not_a_fact() -> None:
    """Celery's dictionary of the whole task is left out, and a reserved name keeps its meaning."""
    document = read(build_record(data={"args": "secret"}, run=None, level="high", taskName="Task-1"))
    assert document.keys() == {"time", "level", "logger", "message", "pid"}
    assert document["level"] == "warning"


@pytest.mark.parametrize("formatter", [JsonFormatter(), TextFormatter()])
def test_no_line_has_a_secret_of_a_url(formatter: logging.Formatter) -> None:
    """It is masked in the message, in the context and in a traceback."""
    try:
        raise ValueError("http://h/?hunter2")
    except ValueError:
        error = sys.exc_info()
    line = formatter.format(
        build_record(
            "http://me:hunter2@h/x", url="redis://:hunter2@h", exc_info=error, stack_info="s://hunter2@h"
        )
    )
    assert "hunter2" not in line
    assert "http://***@h/x" in line
