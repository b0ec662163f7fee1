"""Writes a report into its place in docs/benchmarks.md, with the command, the machine and the date."""

import os
import platform
import re
import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path

from docs.tools.generated_parts import replace_parts

from oku_benchmarks.report import Report
from oku_workers.speedups.extension import IS_COMPILED

PAGE = Path("docs/benchmarks.md")


def update_page(page: str, part: str, report: Report, origin: str) -> str:
    """Replace what the page has between the markers of a part; the part must have its markers."""
    return replace_parts(page, {f"bench {part}": f"{report.build_markdown()}\n\n{origin}"})


def describe_origin(command: str, load_before: float) -> str:
    """The line below a table: how, when and on what it was measured."""
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    return (
        f"`{command}` on {now}, Oku at {fetch_commit()}, extension"
        f" {'compiled' if IS_COMPILED else 'missing'}. {_describe_machine()}, load before {load_before:.1f}."
    )


def fetch_commit(folder: Path = Path()) -> str:
    """The commit of a checkout, with `+` if it has changes; `unknown` without git."""
    if shutil.which("git") is None:
        return "unknown"
    commit = _read_output("git", "-C", str(folder), "rev-parse", "--short", "HEAD")
    is_changed = _read_output("git", "-C", str(folder), "status", "--porcelain", "-uno", "--", "*.py", "*.c")
    return f"{commit}{'+' if is_changed else ''}" if commit else "unknown"


def _describe_machine() -> str:
    processor = _find(r"model name\s*: (.+)", Path("/proc/cpuinfo")) or platform.machine()
    memory_gb = int(_find(r"MemTotal:\s*(\d+) kB", Path("/proc/meminfo")) or 0) * 1024 / 1e9
    release = ".".join(platform.release().split(".")[:2])
    cores = len(os.sched_getaffinity(0))
    return f"{processor}, {cores} cores, {memory_gb:.1f} GB, {platform.system()} {release}"


def _find(pattern: str, path: Path) -> str | None:
    match = re.search(pattern, path.read_text())
    return match[1].strip() if match else None


def _read_output(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""
