"""Where a process spends its processor time: samples of the kernel's clock, by the library they fall into.

`perf` takes them; hardware counters, which many virtual machines lack, are not needed for that. Regular
expressions are a part of their own only if the interpreter has its symbols.
"""

import os
import re
import subprocess
from pathlib import Path

from oku_benchmarks.install import find_program
from oku_benchmarks.measuring.observer import Observation

_HERTZ = 997
_LINE = re.compile(r"^\s*([\d.]+)%\s+(\S.*?)\s*$", re.MULTILINE)
OTHER = "other libraries"
_PARTS = {
    "kernel": r"\[kernel",
    "uvloop with libuv": r"^loop\.cpython",
    "httptools with llhttp": r"^(url_)?parser\.cpython",
    "regular expressions": r"^(libpython|python).* _?sre_",
    "Python's interpreter": r"^(libpython|python)",
    "extension": r"^_speedups\.",
    "OpenSSL": r"^lib(ssl|crypto)\.",
    "C library": r"^(libc|libpthread|libm|ld-linux|\[vdso\])",
    # msgspec has a `_core`, too, which a worker calls a few times a second.
    "libnghttp2 and ngh2": r"^(libnghttp2|(_core|events)\.cpython)",
    "wrk": r"^wrk",
    "h2load": r"^h2load",
}


class Profiler:
    """Profiles one process for a while, once so many requests have been sent.

    Args:
        process: its name.
        after: how many requests.
        for_s: how long.
        folder: for the samples.
    """

    def __init__(self, process: str, after: int, for_s: float, folder: Path) -> None:
        self._process = process
        self._after = after
        self._for_s = for_s
        self._data = folder / "perf.data"
        self._perf: subprocess.Popen[str] | None = None

    def look(self, sample: Observation) -> None:
        """Begin when it is time."""
        if self._perf is not None or sample.sent < self._after or self._process not in sample.pids:
            return
        command = [
            _require_perf(), "record", "--quiet", "--event", "cpu-clock:uk", "--freq", str(_HERTZ),
            "--pid", str(sample.pids[self._process]), "--output", str(self._data), "--",
            "sleep", str(self._for_s),
        ]  # fmt: skip
        self._perf = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def read_shares(self) -> dict[str, float]:
        """Shares of the processor time by part, largest first; empty when it was not permitted."""
        if self._perf is None:
            return {}
        self._perf.communicate()
        if self._perf.returncode:
            return {}
        report = subprocess.run(
            [_require_perf(), "report", "--stdio", "--sort", "dso,symbol", "--input", str(self._data)],
            capture_output=True,
            text=True,
            check=True,
            env=os.environ | {"LC_ALL": "C"},
        )
        return build_shares(report.stdout)


def build_shares(report: str) -> dict[str, float]:
    """The report of `perf` by libraries and their functions, summed up by part."""
    shares: dict[str, float] = {}
    for percent, function in _LINE.findall(report):
        part = next((part for part, pattern in _PARTS.items() if re.search(pattern, function)), OTHER)
        shares[part] = shares.get(part, 0.0) + float(percent) / 100
    return shares


def _require_perf() -> str:
    program = find_program("perf")
    assert program is not None
    return program
