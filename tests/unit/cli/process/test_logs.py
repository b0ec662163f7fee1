import gc
import json
import logging
import subprocess
import sys
import threading
import tomllib
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path, PurePath

import click
import pytest
from click.testing import CliRunner

from oku_cli.options.daemon.process_options import log_options
from oku_cli.process import logs
from oku_cli.process.logs import JsonFormatter, TextFormatter


class Reason(StrEnum):
    """A reason of the kind that Oku logs."""

    LOST = "worker_lost"


def build_record(message: str = "a sentence", **changes: object) -> logging.LogRecord:
    """Build a record with context, as `logging` does."""
    fixed = {
        "name": "oku_workers.broker.orders",
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
        "%s is lost: %d", args=("r.1", 3), requests=3, worker="w1", lease="r.1", run="r", reason=Reason.LOST
    )
    assert list(read(record).items()) == [
        ("time", "2026-02-01T17:05:12.045Z"),
        ("level", "warning"),
        ("logger", "oku_workers.broker.orders"),
        ("message", "r.1 is lost: 3"),
        ("run", "r"),
        ("lease", "r.1"),
        ("worker", "w1"),
        ("requests", 3),
        ("reason", "worker_lost"),
        ("pid", 4711),
    ]
    # Json has an error in one field. The field has the whole traceback.
    error = read(build_record(exc_info=catch()))["error"]
    assert isinstance(error, str)
    assert error.startswith("Traceback (most recent call last):\n")
    assert error.endswith("ValueError: two\nlines \x1b[2J")
    # Json says where a line comes from when asked. It is the `stack_info` of `logging`.
    assert read(build_record(stack_info="Stack:\n  here"))["error"] == "Stack:\n  here"


@pytest.mark.parametrize("text", ["plain", "höhle", '""', '"a=b"', r'"say \"x\""', r'"a\nb"', "0.5"])
def test_text_quotes_what_is_not_a_single_word(text: str) -> None:
    """Each field can be cut out of its line."""
    value = json.loads(text) if text.startswith('"') else text
    assert write(build_record(worker=value)).endswith(f" worker={text} logger=oku_workers.broker.orders")
    assert r' worker="a\u2028b\x85" ' in write(build_record(worker="a\u2028b\x85"))


def test_text_has_sentence_and_context() -> None:
    """The line has everything but the process id."""
    record = build_record(
        "lease %s is lost: %d", args=("r.1", 3), requests=3, worker="w 1", lease="r.1", run="r"
    )
    assert write(record) == (
        "2026-02-01T17:05:12.045Z warning  lease r.1 is lost: 3 "
        'run=r lease=r.1 worker="w 1" requests=3 logger=oku_workers.broker.orders'
    )
    # Text ends with the error. The last line of a traceback is what a reader looks for first.
    lines = write(build_record(exc_info=catch())).splitlines()
    assert lines[0].endswith("a sentence logger=oku_workers.broker.orders")
    assert lines[1] == "Traceback (most recent call last):"
    assert lines[-2:] == ["ValueError: two", r"lines \x1b[2J"]
    # What others wrote begins no line of text. A path may hold anything.
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
    record = build_record(
        "http://me:hunter2@h/x", url="redis://:hunter2@h", exc_info=error, stack_info="s://hunter2@h"
    )
    line = formatter.format(record)
    assert "hunter2" not in line
    assert "http://***@h/x" in line


Read = Callable[[], list[dict[str, str]]]
_NAMES = ("", *logs.PACKAGES)


@contextmanager
def apart() -> Iterator[None]:
    """Logs as in a new process, in the body of a test; afterwards they are as before."""
    root, levels = logging.getLogger(), {name: logging.getLogger(name).level for name in _NAMES}
    handlers, root.handlers = root.handlers, []
    hooks = sys.excepthook, threading.excepthook, sys.unraisablehook
    try:
        yield
    finally:
        root.handlers = handlers
        sys.excepthook, threading.excepthook, sys.unraisablehook = hooks
        logging.captureWarnings(capture=False)
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)


@pytest.fixture
def read_log(capsys: pytest.CaptureFixture[str]) -> Read:
    """Gives the objects that were written to standard error as JSON."""
    return lambda: [json.loads(line) for line in capsys.readouterr().err.splitlines()]


@contextmanager
def logging_json() -> Iterator[None]:
    """Logs as JSON, from the level that is the default."""
    with apart():
        logs.set_format("json")
        logs.set_level("info")
        yield


def test_logs_are_text_in_a_terminal_and_json_elsewhere(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """People read them there."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with apart():
        logs.set_format("auto")
        logging.getLogger("x").warning("for people")
    assert capsys.readouterr().err.endswith(" warning  for people logger=x\n")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: False)
    for name, is_text in [("auto", False), ("json", False), ("text", True)]:
        # Logs are json elsewhere. A program reads them there, unless text is asked for.
        with apart():
            logs.set_format(name)
            logging.getLogger("x").warning("a sentence")
        assert capsys.readouterr().err.startswith("{") is not is_text


@pytest.mark.parametrize("level", logs.LEVELS)
def test_libraries_say_less(read_log: Read, level: str) -> None:
    """Their debug lines never appear: they hold whole messages."""
    libraries = {"debug": "info", "info": "warning"}.get(level, level)
    with logging_json():
        logs.set_level(level)
        for name in ("oku_workers.x", "kombu.x"):
            for number in (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR):
                logging.getLogger(name).log(number, "a sentence")
    # The least of each comes first.
    first = {line["logger"]: line["level"] for line in reversed(read_log())}
    assert first == {"oku_workers.x": level, "kombu.x": libraries}


def test_every_package_of_the_distribution_logs_as_oku_does() -> None:
    """Scenarios, too, whose package has the name of the distribution."""
    project = tomllib.loads(Path(__file__).parents[4].joinpath("pyproject.toml").read_text())
    folders = project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    names = {PurePath(folder).name for folder in folders}
    with apart():
        logs.set_level("debug")
        assert {name for name in names if logging.getLogger(name).level != logging.DEBUG} == set()
    assert "oku" in names


def test_a_fact_of_the_process_is_in_every_line(read_log: Read) -> None:
    """A field of the line itself wins."""
    with logging_json():
        logs.add_context(worker="w1")
        logging.getLogger("kombu").warning("a")
        logging.getLogger("oku_workers").info("b", extra={"worker": "w2", "lease": "r.1"})
    assert [(line["worker"], line.get("lease")) for line in read_log()] == [("w1", None), ("w2", "r.1")]


def test_a_warning_is_a_line(read_log: Read) -> None:
    """It is logged like any other."""
    with warnings.catch_warnings(), logging_json():
        warnings.simplefilter("always")
        warnings.warn("old", DeprecationWarning, stacklevel=1)
    (line,) = read_log()
    assert (line["level"], line["logger"]) == ("warning", "py.warnings")
    assert "DeprecationWarning: old" in line["message"]


def test_an_error_that_python_ignores_or_that_ends_a_thread_is_a_line(read_log: Read) -> None:
    """The line has the traceback; leaving a thread is not an error."""

    def fail() -> None:
        raise ZeroDivisionError("over")

    with logging_json():
        for target in (fail, sys.exit):
            thread = threading.Thread(target=target, name="beat")
            thread.start()
            thread.join()
    (line,) = read_log()
    assert (line["level"], line["message"]) == ("critical", "thread beat ended by ZeroDivisionError: over")
    assert line["error"].startswith("Traceback")

    # An error that python ignores is a line. An error in `__del__` is an example.
    class Stubborn:
        def __del__(self) -> None:
            raise ZeroDivisionError("over")

    with logging_json():
        Stubborn()
        gc.collect()
    (line,) = read_log()
    assert line["level"] == "error"
    assert line["message"].endswith("ZeroDivisionError: over")


def test_an_error_that_ends_a_process_is_logged() -> None:
    """It is one JSON object, or text whose last line, which people are shown, has the error."""
    said = {}
    for name in ("json", "text"):
        code = f"from oku_cli.process import logs; logs.set_format({name!r}); raise ZeroDivisionError('over')"
        ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert ended.returncode == 1
        said[name] = ended.stderr
    line = json.loads(said["json"])
    assert (line["level"], line["message"]) == ("critical", "ended by ZeroDivisionError: over")
    assert line["error"].startswith("Traceback")
    assert " critical ended by ZeroDivisionError: over " in said["text"]
    assert said["text"].splitlines()[-1] == "ZeroDivisionError: over"


def test_a_users_mistake_is_a_line(read_log: Read, capsys: pytest.CaptureFixture[str]) -> None:
    """It has the same form as the rest of the log."""
    with logging_json():
        logs.report_mistake("--port: 80%s is in use")
    (line,) = read_log()
    assert (line["level"], line["message"]) == ("error", "--port: 80%s is in use")
    for name in ["text", None]:
        # A users mistake is a line for people. That is so without a log, or with one for people.
        with apart():
            if name:
                logs.set_format(name)
            logs.report_mistake("--port: 80 is in use")
        assert capsys.readouterr().err == "oku: --port: 80 is in use\n"


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the options have set."""
    told: list[str] = []
    monkeypatch.setattr(logs, "set_format", told.append)
    monkeypatch.setattr(logs, "set_level", told.append)
    return told


@click.command()
@click.option("--port", type=int)
@log_options
def command(port: int) -> None:
    """A process with logs."""


@pytest.mark.parametrize(
    ("arguments", "environment", "expected"),
    [
        ([], {}, {"auto", "info"}),
        (["--log-format", "text", "--log-level", "error"], {}, {"text", "error"}),
        ([], {"OKU_LOG_FORMAT": "json", "OKU_LOG_LEVEL": "debug"}, {"json", "debug"}),
        (["--log-format", "text"], {"OKU_LOG_FORMAT": "json"}, {"text", "info"}),
        (["--port", "x", "--log-format", "text"], {}, {"text", "info"}),
    ],
)
def test_options_say_how_to_log(
    told: list[str], arguments: list[str], environment: dict[str, str], expected: set[str]
) -> None:
    """A flag comes before the environment; both are known before any other value is looked at."""
    CliRunner().invoke(command, arguments, env=environment)
    assert set(told) == expected


def test_options_refuse_what_is_not_there() -> None:
    """The error says what is wrong."""
    for option, known in (("--log-format", logs.FORMATS), ("--log-level", logs.LEVELS)):
        ended = CliRunner().invoke(command, [option, "loud"])
        assert ended.exit_code == 2
        assert f"'loud' is not one of {str([*known])[1:-1]}" in ended.output
