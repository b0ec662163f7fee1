"""Where workers fetch the files of runs."""

import ipaddress

from oku_core.messaging.order import FilesAddress


def find_files_address(
    listening: tuple[str, int], own_name: str, host: str | None = None, port: int | None = None
) -> FilesAddress:
    """The address that workers are told.

    Args:
        listening: the IP address and the port that the coordinator listens on for them.
        own_name: what this machine is called.
        host: what it is called by workers, if that is known.
        port: the port that they use, if it is another one.
    """
    address = ipaddress.ip_address(listening[0].partition("%")[0])
    found = own_name if address.is_unspecified else str(address)
    return FilesAddress(host=host or found, port=port or listening[1])
