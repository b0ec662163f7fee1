from pathlib import Path

from oku_core.process.control_groups import ControlGroup, list_control_groups


def test_control_groups_are_those_of_either_version(tmp_path: Path) -> None:
    """Their paths may have any bytes; other lines are ignored."""
    file = tmp_path / "proc" / "self" / "cgroup"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"5:cpu,memory:/a:b\n1:name=systemd:/\nstray\n0::/c\xfc\xe2\x80\xa8d\n")
    assert list_control_groups(tmp_path) == [
        ControlGroup(frozenset({"cpu", "memory"}), "a:b"),
        ControlGroup(frozenset({"name=systemd"}), ""),
        ControlGroup(frozenset(), "c\udcfc\u2028d"),
    ]


def test_a_system_may_have_no_control_groups(tmp_path: Path) -> None:
    """Such as macOS."""
    assert list_control_groups(tmp_path) == []
