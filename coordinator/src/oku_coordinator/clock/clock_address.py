"""Where workers on other machines ask for the coordinator's clock."""

import ipaddress
from typing import NamedTuple


class ClockAddress(NamedTuple):
    """Whom to ask, by UDP."""

    host: str
    port: int


def find_clock_address(
    api_address: tuple[str, int], own_name: str, host: str | None = None, port: int | None = None
) -> ClockAddress | None:
    """The address that workers are told; None if the API is for processes of this machine alone.

    Args:
        api_address: the IP address and the port that the API listens on.
        own_name: what this machine is called.
        host: what it is called by workers, if that is known.
        port: the port that they use, if it is another one.
    """
    address = ipaddress.ip_address(api_address[0].partition("%")[0])
    if host is None:
        if address.is_loopback:
            return None
        host = own_name if address.is_unspecified else str(address)
    return ClockAddress(host, port or api_address[1]) if host else None
