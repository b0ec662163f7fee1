import os
import subprocess
import sys
from pathlib import Path

import pytest

from oku_server.process_sizes import list_sizes


def test_one_process_tells_its_own_size() -> None:
    """The size is in MB and plausible for a Python process."""
    (size,) = list_sizes(1)
    assert size["pid"] == os.getpid()
    assert 5 < size["peak_rss_mb"] < 5000


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not tell")
def test_several_processes_tell_of_each_other() -> None:
    """Each process lists those with the same parent, and no others."""
    code = "import sys, oku_server.process_sizes as p; sys.stdin.read(); print(len(p.list_sizes(3)))"
    parent = f"""
import subprocess, sys
children = [subprocess.Popen([sys.executable, "-c", {code!r}], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            for _ in range(3)]
out, _ = children[0].communicate()
for child in children[1:]:
    child.communicate()
print(out.decode().strip())
"""
    done = subprocess.run([sys.executable, "-c", parent], capture_output=True, check=True, timeout=30)
    assert done.stdout.strip() == b"3"


def test_another_process_may_have_any_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel cuts names off after 15 bytes, be it amid a character."""
    statuses = [tmp_path / str(number) for number in range(2)]
    for number, name in enumerate((b"\xc3", "a\u2028b:c".encode())):
        statuses[number].write_bytes(
            b"Name:\t%b\nPid:\t%d\nPPid:\t%d\nVmHWM:\t1000 kB\n" % (name, 7 + number, os.getppid())
        )
    monkeypatch.setattr("pathlib.Path.glob", lambda *_: iter(statuses))

    assert [size["pid"] for size in list_sizes(2)] == [7, 8]
