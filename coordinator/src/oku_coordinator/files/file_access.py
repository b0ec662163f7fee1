"""How workers fetch the files of runs: the address and the tickets."""

import ipaddress
from collections.abc import Iterable

from oku_core.messaging.credentials import build_ticket
from oku_core.messaging.order import FilesAddress
from oku_core.messaging.signing import Signer
from oku_core.process.clock import Clock


class FileAccess:
    """What workers need to fetch files.

    Args:
        clock: Unix time.

    Attributes:
        address: where workers fetch files, once it is known.
    """

    def __init__(self, signer: Signer, clock: Clock) -> None:
        self._signer = signer
        self._clock = clock
        self.address: FilesAddress | None = None

    def build_tickets(self, digests: Iterable[str]) -> dict[str, str]:
        """Build tickets of limited validity for the files with these digests."""
        now = self._clock()
        return {digest: build_ticket(self._signer, digest, now) for digest in digests}


def find_files_address(
    listening: tuple[str, int], own_name: str, host: str | None = None, port: int | None = None
) -> FilesAddress:
    """The address of files for workers.

    Args:
        listening: the IP address and the port that the coordinator listens on for them.
        own_name: the name of this machine.
        host: its name for workers, if it is set.
        port: the port for workers, if it is another one.
    """
    address = ipaddress.ip_address(listening[0].partition("%")[0])
    found = own_name if address.is_unspecified else str(address)
    return FilesAddress(host=host or found, port=port or listening[1])
