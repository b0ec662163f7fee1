from pathlib import Path

import pytest

from oku_workers.engines.user_code.oom_watch import OomWatch

V2 = "low 0\nhigh 0\nmax 7\noom 3\noom_kill {}\noom_group_kill 9\n"
V1 = "oom_kill_disable 0\nunder_oom 0\noom_kill {}\n"
VMSTAT = "nr_free_pages 17\noom_kill {}\ndrop_pagecache 5\n"


class Machine:
    """A file system with what the kernel says in it, and a clock."""

    def __init__(self, root: Path, groups: str) -> None:
        self.root = root
        self.now = 0.0
        self.write("proc/self/cgroup", groups)

    def write(self, path: str, text: str) -> None:
        """Write a file."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def watch(self) -> OomWatch:
        """Begin to watch."""
        return OomWatch(self.root, lambda: self.now)


@pytest.mark.parametrize(
    ("groups", "counter", "text"),
    [
        ("0::/kubepods/pod1/c1\n", "sys/fs/cgroup/kubepods/pod1/c1/memory.events", V2),
        ("0::/\n", "sys/fs/cgroup/memory.events", V2),
        ("0::/not/seen/in/here\n", "sys/fs/cgroup/memory.events", V2),
        ("5:cpu,cpuacct:/a\n4:memory:/b/c\n0::/\n", "sys/fs/cgroup/memory/b/c/memory.oom_control", V1),
        ("4:hugetlb,memory:/docker/1\n", "sys/fs/cgroup/memory/memory.oom_control", V1),
        ("1:memory:/a:b\n", "sys/fs/cgroup/memory/a:b/memory.oom_control", V1),
        ("0::/a\n", "sys/fs/cgroup/unified/a/memory.events", V2),
        ("", "proc/vmstat", VMSTAT),
        ("0::/\n", "proc/vmstat", VMSTAT),
    ],
)
def test_the_count_is_found_where_the_kernel_has_it(
    tmp_path: Path, groups: str, counter: str, text: str
) -> None:
    """In the control group of the worker, of either version, in a container or not; else in the system."""
    machine = Machine(tmp_path, groups)
    machine.write("proc/vmstat", VMSTAT.format(1))
    machine.write(counter, text.format(4))
    kills = machine.watch()
    assert not kills.has_risen()
    machine.write(counter, text.format(5))
    assert kills.has_risen()


def test_a_kill_counts_for_some_seconds(tmp_path: Path) -> None:
    """A process with much memory takes its time to end; one that ends much later was not the one."""
    machine = Machine(tmp_path, "0::/\n")
    machine.write("sys/fs/cgroup/memory.events", V2.format(0))
    kills = machine.watch()
    for _ in range(40):
        machine.now += 0.25
        kills.poll()
    machine.write("sys/fs/cgroup/memory.events", V2.format(1))
    for _ in range(16):
        machine.now += 0.25
        assert kills.has_risen()
    for _ in range(12):
        machine.now += 0.25
        kills.poll()
    assert not kills.has_risen()
    # Without a counter nothing has risen. The kernel may be too old, or a sandbox may hide the counter.
    kills = OomWatch(tmp_path)
    kills.poll()
    assert not kills.has_risen()
