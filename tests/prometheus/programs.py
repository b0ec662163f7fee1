"""Builds the programs of this folder, which are made of Prometheus' own packages."""

import shutil
import subprocess
from pathlib import Path

from tests.kit.requirement import miss

_HERE = Path(__file__).parent
_BUILT = _HERE.parents[1] / "build" / "prometheus"


def build_program(name: str, package: str) -> Path:
    """Compile a program, anew only when it has changed."""
    if shutil.which("go") is None:
        miss("there is no Go: metrics and alerts cannot be held against Prometheus itself")
    _BUILT.mkdir(parents=True, exist_ok=True)
    built = subprocess.run(
        ["go", "build", "-mod=readonly", "-o", str(_BUILT / name), package],
        cwd=_HERE, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert built.returncode == 0, built.stderr
    return _BUILT / name
