"""The worst cases of the regular expressions that see foreign text: what makes each try the most for nothing.

A row is a place (`tests/kit/regular_expressions.py`) and its worst texts. A text is what is repeated; or that
with what comes before and after it. An expression that is built from parts has a row with what uses it.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from yarl import URL

from oku.http.request_plan import build_plan_url
from oku_cli.imports.curl.shell_words import split_words
from oku_cli.process.logs import JsonFormatter, TextFormatter
from oku_cli.report.masking import mask_header
from oku_core.accounting.outcome import OUTCOMES, Outcome
from oku_core.data.csv_rows import read_header
from oku_core.data.escape import IN_URL
from oku_core.http_client.error_reason import explain_error
from oku_core.http_client.redirects import RedirectError, join_location
from oku_core.process.redaction import SecretTexts, redact
from oku_core.spec.target import parse_expectation
from oku_core.spec.values.check import parse_sizes
from oku_core.spec.values.delay import parse_delay
from oku_core.spec.values.pattern import compile_pattern
from oku_core.spec.values.url import parse_urls
from oku_workers.engines.http.answer_checks import build_judge
from oku_workers.engines.httptools.body_size import FIXED, LENGTH, VALUE, build_measure

Text = str | tuple[str, str, str]

_A_NAME: Sequence[Text] = ["a", ("a", "a", " "), ("a", "-", "é")]
_MARKS: Sequence[Text] = [
    "#", "##a", " ", "\n ", ":", ":\u00ad", "\u00ad", "#\u00ad", "##a\u00ad", "-", "-\u00ad", "\n---",
    "\x1b[0", "\x1b[0m",
]  # fmt: skip
_A_DIGEST: Sequence[Text] = ["0", "@sha256:", ("@sha256:", "0", "")]

WORST: Mapping[str, Sequence[Text]] = {
    "oku.http.request_plan:_MALFORMED": ["a"],
    "oku.http.request_plan:_METHOD": _A_NAME,
    "oku.http.http:_CREDENTIALS": ["/", "a", "//a", ("//", "a", ""), ("//", "@", "/")],
    "oku.locust_host.request_outcome:_ADDRESS": [" at 0x", (" at 0x", "a", "z"), " at "],
    "oku.locust_host.request_outcome:_LIBRARY": [
        "/a", "/", "a", "a:", "/site-packages", "//site-packages/", (" ", "/a", "/site-packages"), " /a",
    ],
    "oku.locust_host.request_outcome:_PROXY_REFUSED": [
        "Tunnel connection failed: 1", ("Proxy CONNECT failed: HTTP/", "a", ""),
        ("Proxy CONNECT failed: HTTP/", "a", " 1"),
    ],
    "oku_cli.comparison.obstacles:_DIGEST": _A_DIGEST,
    "oku_cli.imports.curl.curl_command:_CERTIFICATE": ["a", "\\\\", "\\:", ("a", "\\\\", ":"), ":a"],
    "oku_cli.imports.curl.curl_command:_SCHEME": ["a", "a+", ("a", ".", ":/"), ("a", "-", "")],
    "oku_cli.imports.curl.curl_command:_read_certificate": ["\\", "\\:", "\\a"],
    "oku_cli.imports.curl.curl_command:_DOT_SEGMENT": ["/", "/.", "/..", "/...", "a"],
    "oku_cli.imports.curl.curl_command:_GLOB": ["{", "{a", "[", "[a", ("{", "a", ""), ("[", "a", ""), "[]"],
    "oku_cli.imports.har.har_body:_BOUNDARY": ["boundary=", ('boundary="', "a", ""), "boundary=a"],
    "oku_cli.imports.har.har_file:_ASSET_END": [".", ".png", (".png", ".js", "x"), ".mp"],
    "oku_cli.imports.har.har_file:_ASSET_TYPE": ["image", "text/", "text/x-", "application/"],
    "oku_cli.imports.har.har_file:_VERSION": ["http/", ("h", "1", ""), "h"],
    "oku_cli.imports.har.har_file:_is_request": ["http", ("http", "s", "://"), ("http:", "/", "")],
    "oku_cli.imports.har.har_file:_is_request 2": _A_NAME,
    "oku_cli.imports.headers:SecretBox.stand_for": ["-", "a", "-a"],
    "oku_cli.imports.headers:_SCHEME": ["Basic", ("Basic", " ", ""), "Basic "],
    "oku_cli.imports.headers:_SECRET_NAME": ["api-", "-autoke"],
    "oku_cli.imports.imported_spec:split_origin": ["/", "a", "?#", "a/"],
    "oku_cli.imports.imported_spec:_PARTS": [
        "{", "{env:", ("{env:", "a", ""), "{i", "{i}", "{literal:a", ("{literal:", "a", ""),
    ],
    "oku_cli.imports.openapi.openapi_servers:_VARIABLE": ["{", "{a", "}", "{}", ("{", "a", "")],
    "oku_cli.imports.curl.shell_words:_ANSI": ["\\", "\\x", "\\0", "a", "\\x4", "\\u0", "\\U", "\\c"],
    "oku_cli.imports.curl.shell_words:_DOUBLE": ["\\", "\\\n", "\\a"],
    "oku_cli.imports.curl.shell_words:_EXPANDED": ["\\", "$", ("", "\\", "$"), "\\a"],
    "oku_cli.imports.curl.shell_words:_WORD_PARTS": [
        ("'", "a", ""), ("$'", "a", ""), ("$'", "\\a", ""), ('"', "\\", ""), ('$"', "a\\b", ""), " ", "\\\n",
        ("", "\\\r\n", "\\"), "a", "$", " #", (" #", "a", ""), " #\n",
    ],
    "oku_cli.imports.curl.shell_words:_describe_fault": ["`", " "],
    "oku_cli.imports.spec_writer:_EXPONENT": ["1", ".", ("1e", "1", "x"), ("1", ".1", "e")],
    "oku_cli.imports.curl.curl_body:_ESCAPED": ["\\", '"', "a"],
    "oku_cli.imports.curl.curl_body:_OPTION": ["; ", ";type=", ';type="', ("; type=", "a", "")],
    "oku_cli.imports.curl.curl_body:_WORD": ['"', "\\", ('"', "\\a", ""), ";", "a"],
    "oku_cli.imports.curl.windows_words:_ARGUMENT_PARTS": [" ", "\\", ("", "\\", '"'), '"', "a"],
    "oku_cli.imports.curl.windows_words:_CMD_PARTS": ["^", "^\n", '"', ('"', "a", ""), '"a', "\n"],
    "oku_cli.imports.curl.windows_words:_KEPT_CARET": ["^", "^a", "a"],
    "oku_cli.imports.curl.windows_words:_VARIABLE": ["%", "%a", ("%", "a", ""), "%a%00"],
    "oku_cli.options.daemon.allow_options:_VARIABLE": _A_NAME,
    "oku_cli.options.daemon.file_options:_HOST_PORT": ["a", "[", ("[", ":", "]"), ("a:", "1", "")],
    "oku_cli.options.option_group:_PLAIN_WORD": [*_A_NAME, "/", "@~/"],
    "oku_cli.process.interrupt_hints:find_volume": ["\\", "\\0", "\\040"],
    "oku_cli.process.logs:_PLAIN": ["a", ("", "a", "=")],
    "oku_cli.kube.kubectl:_LOGGED": [("I0000 ", "a", ""), ("I0000 ", "]", ""), "I0000 ", "\t\n", " >\n"],
    "oku_cli.kube.kubectl:_LOG_HEAD": [("I0000 ", "a", ""), ("I0000 ", "]", ""), "I0000 "],
    "oku_cli.kube.kubectl:_MISTAKES": [
        ("executable ", "a", ""), 'context "', ('context "', "a", ""), "executable a ",
    ],
    "oku_cli.kube.tunnel:_FORWARDING": ["Forwarding from ", "Forwarding from 127.0.0.1:\n", "\n", "a"],
    "oku_cli.kube.tunnel:_NO_REASON": ["Forwarding from", "\n", "a", "Handling connection for"],
    "oku_cli.report.masking:_USER": ["//", "//a", ("//", "a", ""), ("//", "@", "/"), "/"],
    "oku_cli.report.masking:_mask_user": [":aaaaaaaaaaaaaaa", ("", ":aaaaaaaaaaaaaaa", "}"), ":{", ":}"],
    "oku_cli.terminal.ci_commands:_MARK": _MARKS,
    "oku_cli.terminal.ci_commands:_MARK_OF_ANY_LINE": _MARKS,
    "oku_cli.terminal.printable:UNPRINTABLE": ["a", "\n", "\u200b"],
    "oku_cli.terminal.printable:_UNPRINTABLE_IN_ASCII": ["a", "\n", "\u200b"],
    "oku_cli.terminal.printable:_UNPRINTABLE_IN_JSON": ["a", "\n", "\u200b"],
    "oku_core.data.data_format:COLUMN_NAME": _A_NAME,
    "oku_core.data.csv_rows:_BLANK": ["\r", "\n", "\n\r", "a"],
    "oku_core.data.csv_rows:_QUOTED": [('"', "a", ""), '"aaaaaaa'],
    "oku_core.data.csv_rows:_STRAY_QUOTE": [",", "a,", "\r\n", '"', '","'],
    "oku_core.data.csv_rows:_STRAY_RETURN": ["\r", "\r\n", "a"],
    "oku_core.data.escape:CONTROL_CHARACTER": ["a", "\n"],
    "oku_core.data.scan:_MAYBE_CONTROL": ["a", "\n"],
    "oku_core.http_client.error_reason:_VARYING": [
        "(", "[", "'", '"', "'\"", "1", "1.", ("1", ".", ""), ("1", ":", "_"), ("", "1", "_"), "0x",
        ("0x", "f", "z"), "(\n", ("(", "a", ""), "1_",
    ],
    "oku_core.http_client.request_head:_MALFORMED": ["a"],
    "oku_core.http_client.response_reader:_BLANK_FIRST_LINE": ["a", "\n", "\n\t", "a\n"],
    "oku_core.http_client.response_reader:_BLANKS_BEFORE_COLON": [
        "\na", ("\n", "a", ""), ("\na", " ", ""), ("\na", " ", "b"), "\na ", "\n",
    ],
    "oku_core.http_client.response_reader:_ENCODINGS": [
        "\ntransfer-encoding", ("\ntransfer-encoding", " ", ""), ("\ntransfer-encoding:", "a", ""),
        ("\ntransfer-encoding:", "\n ", "\n"), "\ntransfer-encoding:\n ", "\n",
    ],
    "oku_core.http_client.response_reader:_HAS_LENGTH": [
        "\ncontent-length", ("\ncontent-length", " ", ""), "\n",
    ],
    "oku_core.http_client.response_reader:_HEAD_END": ["\n", "\r", "\r\n", "\na"],
    "oku_core.http_client.response_reader:_NOTABLE": ["\na", "\r", "\ntransfer", "a"],
    "oku_core.http_client.response_reader:_CLOSE": ["close", "_close", "c"],
    "oku_core.http_client.response_reader:_CONNECTIONS": [
        "\nconnection:", ("\nconnection:", "close", ""), ("\nconnection:", "\n close_", ""), "\n",
        ("\nconnection:", " ", ""), ("\nconnection", " ", ""), ("\nconnection:", "\n ", "\n"),
        "\nconnection:\n ",
    ],
    "oku_core.accounting.counts:_STATUS": ["0", "00x"],
    "oku_core.messaging.credentials:_TICKET": ["0", "0.", ("0.", "a", "")],
    "oku_core.process.redaction:_AFTER_SCHEME": [
        "a", "://", "a://", "://,", ("://", ",", ""), ("://", "a,", " "), "http:", ":/", "://a ",
        ("http://", "@", ""),
    ],
    "oku_core.process.redaction:_HOST": ["a", "[", "[]", ("[", ":", ""), ("a:", "1", "x"), ":1"],
    "oku_core.process.redaction:_redact_rest": ["a", "/", "?#"],
    "oku_core.spec.description:_PLACEHOLDER": [
        "{", "{a", "}", "{}aaaaaaaaaaaaaa", ("{", "a", ""), "{literal:",
    ],
    "oku_core.spec.secrets:_CONTROL": ["a"],
    "oku_core.spec.values.request_content:_FORM": [
        "a", "a=", "a=a&", "&", "=", ("a=", "a", " "), ("", "a=&", "="), "a=b=&",
    ],
    "oku_core.spec.values.check:_INDEX": ["0", "1"],
    "oku_core.spec.values.check:_POINTER": ["/", "/a", "~", "/~0", ("/", "a", "~"), ("", "/~0", "~2")],
    "oku_core.spec.values.delay:_SIGMA": [" ", "1", "1.", ("1.", "1", "x"), (" ", "1", ".")],
    "oku_core.spec.values.delay:_WHOLE_SECONDS": ["1", "_", ("1", " ", "x"), ("", "1", "ss")],
    "oku_core.spec.values.check:_STATUS": ["1", "1x", "2xx"],
    "oku_core.spec.values.file_reference:_DIGEST": _A_DIGEST,
    "oku_core.spec.values.file_reference:_REFERENCE": _A_DIGEST,
    "oku_core.spec.values.request_content:_NAME": _A_NAME,
    "oku_core.spec.values.request_content:_VALUE": ["a", ("", "a", "\n")],
    "oku_core.spec.values.request_content:_find_length_fault": ["0"],
    "oku_core.spec.values.scalar:parse_method": _A_NAME,
    "oku_core.spec.values.pattern:_ESCAPE_OR_REPETITION": ["\\", "{,", ("{,", "1", ""), "{,1"],
    "oku_core.spec.values.template:LITERAL_TEXT": [
        "{", "{literal:", "{literal:a", ("{literal:", "a", ""), "{literal:}",
    ],
    "oku_core.spec.values.template:NAMED_PLACEHOLDER": ["{", "{a", ("{", "a", ""), "{a}"],
    "oku_core.spec.values.template:SECRET_PLACEHOLDER": [
        "{", "{env:", "{env:a", ("{env:", "a", ""), "{file:", ("{file:", "a", ""), "{file:a",
    ],
    "oku_core.spec.values.template:_MEANS_SOMETHING": ["{", "{env", "{env:", "{i", "{i}", "{literal:"],
    "oku_core.spec.values.template:_SECRET_BEGINS": ["{", "{env:", ("{env:", "a", ""), "{file:a"],
    "oku_core.spec.values.quantity:_QUANTITY": [
        "1", "_1", ("1", "_1", "_"), ("1", " ", "1"), ("1.", "1", "."), ("1", "s", "1"), ("1e", "1", ""),
    ],
    "oku_core.spec.values.scalar:_NUMBER": ["1", ("1.", "1", "x"), ("1e", "1", "x"), "1.", ("-", "1", "-")],
    "oku_core.spec.values.scalar:_SURROGATE": ["a"],
    "oku_core.spec.values.threshold_reader:_WORD": [
        " ", ('"', "a", ""), "a", (" ", '"', ""), (" ", " ", '"'),
    ],
    "oku_core.spec.values.url:_SCHEME": ["a", "a:", ("", "a", ":/"), "://"],
    "oku_core.spec.values.url:_STRAY_BRACE": ["{", "a", ("{", "a", "")],
    "oku_core.spec.values.url:_parse_url": ["a", "/"],
    "oku_server.settings:_SIZE": ["1", "_", ("1.", "1", ""), ("1", "k", ""), ("1", "_", "k")],
    "oku_workers.engines.http.answer_checks:_ENCODING": [
        "\ncontent-encoding", ("\ncontent-encoding", " ", ""), ("\ncontent-encoding:", " ", ""), "\n",
    ],
    "oku_workers.engines.httptools.body_size:_CHUNK_SIZE": ["0", "0\r", "0\r\n"],
    "oku_workers.engines.httptools.response_pattern:_HEADER": ["a", "a:", ("a:", " ", ""), ("a:", "a", "\r")],
    "oku_workers.engines.httptools.response_pattern:_STATUS_LINE": [
        ("HTTP/1.1 200 ", "a", ""), ("HTTP/1.1 200 ", "a", "\r"), "HTTP/1.1 200",
    ],
    "oku_workers.engines.user_code.oom_watch:_COUNT": ["oom_kill 1", "\n", ("\noom_kill ", "1", "x")],
    "oku_workers.engines.contract.user_code_host:_HARMLESS": ["LC_", ("LC_", "A", "a"), "HOME", "LANG"],
}  # fmt: skip
"""For each place, the texts."""

_SHAPE = [(FIXED, b"HTTP/1.1 200 OK\r\n"), (VALUE, b"A:"), (VALUE, b"B:"), (LENGTH, b"Content-Length:")]
_VALUES: Sequence[Text] = [
    ("HTTP/1.1 200 OK\r\nA:", "a", ""), ("HTTP/1.1 200 OK\r\nA:", "\r", ""),
    ("HTTP/1.1 200 OK\r\nA:a\r\nB:", "b", "\r\nContent-Length: x"),
    ("HTTP/1.1 200 OK\r\nA:\r\nB:\r\nContent-Length:", " ", "\r\n"),
    ("HTTP/1.1 200 OK\r\nA:\r\nB:\r\nContent-Length:", "1", "\r\n"), "A:\r\nB:\r\n",
]  # fmt: skip


def _measure(text: str) -> int:
    return build_measure(_SHAPE)(text.encode())


def _check_header(text: str) -> object:
    judge = build_judge(parse_expectation({"status": 200, "header": "X-Name: value"}), timeout_s=1)
    return judge.judge(200, 0, text.encode(), b"")


def _escape(text: str) -> bytes:
    return IN_URL.escape(text.encode())


def _match_pattern(text: str) -> None:
    compile_pattern("(x+x+)+y").search(text.encode())


def _mask_words(text: str) -> str:
    return SecretTexts(["a", "ab", "a/"]).replace_words(text, "***")


def _mask_quoted(text: str) -> str:
    return SecretTexts(["%% %%25\\&+", "a/a/a/a/b"]).replace(text, "***")


def _mask_header(text: str) -> str:
    return mask_header(f"X: {text}", ["one", "two"])


BUILT: Mapping[str, tuple[Callable[[str], object], Sequence[Text]]] = {
    "oku_cli.report.masking:_find_placeholders": (
        _mask_header, ["{", "{env:", "{on", ("{env:", "a", ""), "{one}aaaaaaaaaaa"],
    ),
    "oku_core.data.escape:_RESERVED": (_escape, ["a", "/aaaaaaa"]),
    "oku_core.process.redaction:_build_pattern": (
        _mask_quoted, ["%", "%25", "%2525", "\\", "\\%5c", "a/", "a%2f", ("%", "a/", ""), "&amp;", "%2b+ "],
    ),
    "oku_core.process.redaction:_build_words": (_mask_words, ["a", "ab", " a", "a/", ("a", "b", "")]),
    "oku_core.spec.values.pattern:compile_pattern": (_match_pattern, ["x"]),
    "oku_workers.engines.http.answer_checks:_build_header_check": (
        _check_header, ["\nX-Name", ("\nX-Name", " ", ""), ("\nX-Name:", " ", ""), "\nX-Name: a", "\n"],
    ),
    "oku_workers.engines.httptools.body_size:build_measure": (_measure, _VALUES),
    "oku_workers.engines.httptools.body_size:build_measure 2": (_measure, _VALUES),
    "oku_workers.engines.httptools.body_size:build_measure.keep_common": (_measure, _VALUES),
}  # fmt: skip
"""For each place, what uses the expression that is built there, and the texts."""


def _log(text: str) -> None:
    record = logging.LogRecord("name", logging.INFO, "path", 1, "user code: %s", (text,), None)
    TextFormatter().format(record)
    JsonFormatter().format(record)


def _redirect(location: str) -> None:
    with suppress(RedirectError):
        join_location(URL("http://127.0.0.1/"), location)


def _explain(text: str) -> str:
    return explain_error(OUTCOMES.index(Outcome.PROTOCOL_ERROR), Exception(text), "")


def _refusing(parse: Callable[[str], object]) -> Callable[[str], None]:
    def run(text: str) -> None:
        with suppress(ValueError):
            parse(text)

    return run


_HAN, _E_ACUTE = "".join(map(chr, range(0x4E00, 0x6E00))), "\N{LATIN SMALL LETTER E WITH ACUTE}"
_URLS: Sequence[Text] = [
    "a", ("http://h/'", "a", ""), ("http://", _E_ACUTE, ""), ("http://", _HAN, "/"), ("http://", ":", "@h/"),
    ("http://", "a.", ""), ("http://h/", "{", ""), ("http://h/", "://", ""),
]  # fmt: skip
CARRIERS: Mapping[str, tuple[Callable[[str], object], Sequence[Text]]] = {
    "redacted text": (redact, _URLS),
    "a line of a log": (_log, ["a", " ", ("a", " ", "b"), "://a ", ("", "(", "x"), "=", " \n", "\u200b"]),
    "a target's Location": (_redirect, [*_URLS, ("\t//", f"{_E_ACUTE}\t", ""), "'a"]),
    "the reason of a request": (_explain, [*_URLS, "(", "[", "'", '"', "1.", " ", "(\n"]),
    "a URL of user code": (_refusing(lambda text: build_plan_url(None, text)), [*_URLS, ("/", "'", "")]),
    "a URL of a spec": (_refusing(parse_urls), _URLS),
    "a pasted command": (_refusing(split_words), [f"a'{'a' * 60}'", f"{'a' * 60} ", ("$'", "a", "")]),
    "a command for cmd.exe": (_refusing(split_words), ['^"', ('^"', "a^\n", ""), ('^"', '"', "")]),
    "the header of a table": (
        _refusing(lambda text: read_header(text.encode())), [('"', "\n", '"\n'), '"a\n"', ('"', "\n", "")],
    ),
    "a delay": (_refusing(parse_delay), ["a", "1", ".", ("1..1", "s", "1"), ("1", "s", "..2"), ".. "]),
    "a size": (_refusing(parse_sizes), [" ", ("<", " ", "\na\nb"), "1", "<"]),
}  # fmt: skip
"""What foreign text goes through, and the texts."""
