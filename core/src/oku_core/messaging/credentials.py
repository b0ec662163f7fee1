"""Credentials: how strong tokens and keys must be, tickets for files of runs, why a caller is refused.

By a ticket, a worker fetches one file of its run, for a limited time. It is signed with the key of all
messages, which workers have and callers of the API have not. Only the coordinator makes and checks tickets,
so its clock alone counts.
"""

import re
from enum import StrEnum

from oku_core.messaging.signing import PROTOCOL, ForgedMessageError, MessageKind, SealedMessage, Signer


class Credential(StrEnum):
    """What a caller must present."""

    TOKEN = "token"  # noqa: S105  # the word
    """For the API."""
    TICKET = "ticket"
    """For one file of a run."""


class CredentialFault(StrEnum):
    """The fault of a credential."""

    MISSING = "missing"
    MALFORMED = "malformed"
    """It does not have the form of one."""
    WRONG = "wrong"
    EXPIRED = "expired"
    """Only a ticket expires."""


SHORTEST = 16
"""Characters of a token, bytes of a key."""
_LEAST_VARIED = 5
"""Different ones among them: of 16 random digits, one in 10,000 has fewer."""
HOW_TO_MAKE = "$(openssl rand -hex 32)"


def find_weakness(secret: bytes, unit: str) -> str:
    """Return why a secret is too easy to guess, without showing it; empty if it is strong.

    Args:
        secret: without blanks and line breaks around it.
        unit: the unit of its length in messages, such as `characters`.
    """
    for count, least, what in (
        (len(secret), SHORTEST, unit),
        (len(set(secret)), _LEAST_VARIED, f"different {unit}"),
    ):
        if count < least:
            return f"has {count} of at least {least} {what}"
    return ""


TICKET_S = 3600.0
"""How long a ticket is valid. It is checked when a transfer begins; a transfer under way continues."""
TICKET_SCHEME = "Oku-Ticket"
"""Begins the header `Authorization` of a call with a ticket."""
_TICKET = re.compile(r"(?P<expires>[0-9]{1,12})\.(?P<signature>[0-9a-f]{64})")


def build_ticket(signer: Signer, digest: str, now: float) -> str:
    """A ticket for the file with this digest, from `now` in Unix time on."""
    expires = int(now + TICKET_S)
    sealed = signer.seal(MessageKind.FILE_TICKET, _build_body(digest, expires))
    return f"{expires}.{sealed.signature}"


def judge_ticket(signer: Signer, digest: str, ticket: str, now: float) -> CredentialFault | None:
    """Return the fault of a ticket for the file with this digest at `now`, in Unix time; None if valid."""
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
