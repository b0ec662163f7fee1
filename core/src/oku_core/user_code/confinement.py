"""Whether user code is confined to its files, by Landlock."""

from enum import StrEnum

from oku_core.errors import UserError
from oku_core.process.landlock import find_version


class Confinement(StrEnum):
    """Whether a worker confines user code."""

    OFF = "off"
    ON = "on"
    """Where the kernel can; where it cannot, user code runs unconfined, and its run has a notice."""
    REQUIRED = "required"
    """Nothing is run where the kernel cannot."""

    def check(self) -> None:
        """Refuse with a `UserError` what this machine cannot do."""
        if self is Confinement.REQUIRED and find_version() == 0:
            raise UserError("--require-confinement: the kernel has no Landlock, which confines user code")
