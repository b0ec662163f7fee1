"""What the chart takes as a quantity, held against what the programs take that get it."""

from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest
from tests.unit.chart.rendering import evaluate

from oku_cli.options.daemon.kube_options import IDLE
from oku_cli.options.loki_options import parse_outbox_bytes
from oku_core.errors import UserError
from oku_core.spec.values.delay import parse_delay
from oku_core.spec.values.quantity import parse_duration_s

NUMBERS = (
    "0", "1", "1.5", "0.5", "10", "9.999", "007", "499", "500", "3600", "3600.001", "86400", "86401", "1_000",
    "999_999", "1_000_000", "1e3", "1E-3", "1e+5", "1e99", "+5", "-1",
    "", "x", ".5", "10.", "1__0", "_1", "1_", "1.5.2", "1,5", "0x10", "1e", "٣",
)  # fmt: skip
UNITS = (
    "", "us", "µs", "ms", "s", "m", "h", "MS", "Ms", "S", "US", "H", " ms",
    "b", "B", "k", "kB", "KB", "kIb", "M", "mb", "MiB", " MiB", "G", "GB", "gib",
    "x", "d", "sec", "min", "bits", "%", "%s",
)  # fmt: skip
# As YAML gives it, without space around.
QUANTITIES = [text for text in ("".join(pair) for pair in product(NUMBERS, UNITS)) if text == text.strip()]
BOUNDS = ("0", "1", "1.5ms", "0.5s", "5MS", "1h", "2h", "1_000us", "3", "1 ms", "x", "-1", "")
SIGMAS = ("0", "0.5", "5", "5.1", "05", "-1", "x", "", ".5", "1e1", " 1")
DELAYS = [
    *QUANTITIES,
    *(f"exp:{text}" for text in QUANTITIES),
    *(f"{low}{dots}{high}".strip() for low, high in product(BOUNDS, BOUNDS) for dots in ("..", " .. ")),
    # A median whose mean is at most an hour, or that is itself too long.
    *(f"lognormal:{text},{sigma}" for text in ("1ms", "0", "1.5 MS", "2h", "x") for sigma in SIGMAS),
    "exp: 50ms", "lognormal: 40ms , 0.5", "lognormal:40ms", "even:1s", "1s..2s..3s", "exp:1s..2s", "soon",
]  # fmt: skip


def _read_worker_timeout_s(text: str) -> float:
    """As `oku coordinator --worker-timeout` is read."""
    timeout_s = parse_duration_s(text)
    if not 1 <= timeout_s <= 7200:
        raise ValueError(text)
    return timeout_s


def _is_taken(read: Callable[[str], object], text: str) -> bool:
    try:
        read(text)
    except (UserError, ValueError):
        return False
    return True


@pytest.mark.parametrize(
    ("check", "read", "texts"),
    [
        (
            '"oku.checkDuration" (dict "text" . "least" 10.0 "most" 86400.0 "between" "")',
            IDLE.parse,
            QUANTITIES,
        ),
        (
            '"oku.checkDuration" (dict "text" . "least" 1.0 "most" 7200.0 "between" "")',
            _read_worker_timeout_s,
            QUANTITIES,
        ),
        ('"oku.checkOutbox" .', parse_outbox_bytes, QUANTITIES),
        ('"oku.checkDelay" .', parse_delay, DELAYS),
    ],
    ids=["idle", "worker timeout", "outbox", "delay"],
)
def test_the_chart_accepts_what_the_program_accepts_and_nothing_else(
    tmp_path: Path, check: str, read: Callable[[str], object], texts: list[str]
) -> None:
    """A value refused without need helps nobody; one accepted without reason ends in a crash."""
    template = (
        "said:\n{{- range .Values.global.texts }}\n- {{ include " + check + " | toJson }}\n{{- end }}\n"
    )
    said = evaluate(template, {"global": {"texts": texts}}, tmp_path)["said"]
    taken = {text for text, wrong in zip(texts, said, strict=True) if not wrong}
    assert taken == {text for text in texts if _is_taken(read, text)}
    assert 20 < len(taken) < len(set(texts)) - 20


def test_a_size_is_held_against_a_limit_of_kubernetes(tmp_path: Path) -> None:
    """They are written in different ways; a limit is not above itself."""
    fits = {
        # 640 MB are less than or equal to each of these.
        "640M": True, "640000k": True, "640000000": True, 640000000: True, "6.4e8": True,
        "0.64G": True, ".64G": True, "640e6": True, "64E7": True, "640000000000m": True, "611Mi": True,
        "625000Ki": True, "1Gi": True, "1Ti": True, "1E": True, "1Ei": True, "+1Gi": True, "2.": False,
        "639999k": False, "639999999": False, 639999999: False, "639999999999m": False, "610Mi": False,
        "0.59Gi": False, "624999Ki": False, "6.39e8": False, "640k": False, "640m": False, "639M": False,
    }  # fmt: skip
    template = (
        "said:\n{{- range .Values.global.limits }}\n"
        '- {{ include "oku.exceeds" (dict "size" "640MB" "limit" .) | toJson }}\n{{- end }}\n'
    )
    said = evaluate(template, {"global": {"limits": list(fits)}}, tmp_path)["said"]
    assert {limit: not wrong for limit, wrong in zip(fits, said, strict=True)} == fits
