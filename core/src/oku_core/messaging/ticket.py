"""Tickets, by which workers fetch the files of their runs: each is for one file, and for a time.

They are signed with the key of all messages, which workers have and the API's callers have not. Only the
coordinator makes and checks them, so that its clock alone counts.
"""

import re

from oku_core.messaging.credential import CredentialFault
from oku_core.messaging.rejection import ForgedMessageError
from oku_core.messaging.signing import PROTOCOL, MessageKind, SealedMessage, Signer

TICKET_S = 3600.0
"""For so long a ticket holds. It is looked at when a transfer begins; one that goes on then goes on."""
TICKET_SCHEME = "Oku-Ticket"
"""Begins the header `Authorization` of a call with a ticket."""
_TICKET = re.compile(r"(?P<expires>[0-9]{1,12})\.(?P<signature>[0-9a-f]{64})")


def build_ticket(signer: Signer, digest: str, now: float) -> str:
    """A ticket for the file with this digest, from `now` in Unix time on."""
    expires = int(now + TICKET_S)
    sealed = signer.seal(MessageKind.FILE_TICKET, _build_body(digest, expires))
    return f"{expires}.{sealed.signature}"


def judge_ticket(signer: Signer, digest: str, ticket: str, now: float) -> CredentialFault | None:
    """What is wrong with a ticket for the file with this digest at `now`, in Unix time; None if nothing."""
    match = _TICKET.fullmatch(ticket)
    if match is None:
        return CredentialFault.MALFORMED if ticket else CredentialFault.MISSING
    body = _build_body(digest, int(match["expires"])).decode()
    try:
        signer.check(
            MessageKind.FILE_TICKET,
            SealedMessage(protocol=PROTOCOL, body=body, signature=match["signature"]),
        )
    except ForgedMessageError:
        return CredentialFault.WRONG
    return CredentialFault.EXPIRED if int(match["expires"]) < now else None


def _build_body(digest: str, expires: int) -> bytes:
    return f'{{"digest":"{digest}","expires":{expires}}}'.encode()
