from pathlib import Path

import pytest

from oku_core.process import kernel_id
from oku_core.process.kernel_id import fetch_kernel_id


@pytest.fixture
def proc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What a kernel says of itself."""
    (tmp_path / "boot_id").write_text("5ff4\n")
    (tmp_path / "time").symlink_to("time:[4026531834]")
    monkeypatch.setattr(kernel_id, "_BOOT_ID", tmp_path / "boot_id")
    monkeypatch.setattr(kernel_id, "_TIME_NAMESPACE", tmp_path / "time")
    return tmp_path


def test_it_is_the_same_for_all_processes_of_a_machine() -> None:
    """And not empty."""
    assert fetch_kernel_id()
    assert fetch_kernel_id() == fetch_kernel_id()


def test_it_names_the_boot_and_the_time_namespace(proc: Path) -> None:
    """Either makes another monotonic clock."""
    assert fetch_kernel_id() == "5ff4 time:[4026531834]"
    (proc / "boot_id").write_text("6aa0\n")
    assert fetch_kernel_id() == "6aa0 time:[4026531834]"


def test_an_old_kernel_has_no_time_namespaces(proc: Path) -> None:
    """Its boot is enough."""
    (proc / "time").unlink()
    assert fetch_kernel_id() == "5ff4"


def test_a_kernel_that_hides_its_boot_has_no_id(proc: Path) -> None:
    """Nobody is known to share its clock."""
    (proc / "boot_id").unlink()
    assert not fetch_kernel_id()
