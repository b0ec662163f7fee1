import pytest

from oku_core.errors import UserError
from oku_core.user_code import confinement
from oku_core.user_code.confinement import Confinement


def test_only_what_is_required_can_be_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Elsewhere a run has a notice."""
    monkeypatch.setattr(confinement, "find_version", lambda: 0)
    Confinement.OFF.check()
    Confinement.ON.check()
    with pytest.raises(UserError, match=r"^--require-confinement: the kernel has no Landlock"):
        Confinement.REQUIRED.check()
    monkeypatch.setattr(confinement, "find_version", lambda: 1)
    Confinement.REQUIRED.check()
