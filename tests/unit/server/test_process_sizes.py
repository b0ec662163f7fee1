import os
import subprocess
import sys

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
