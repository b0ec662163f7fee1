"""Why a caller is refused: the credential that it needs, and what is wrong with it."""

from enum import StrEnum


class Credential(StrEnum):
    """What a caller must present."""

    TOKEN = "token"  # noqa: S105  # the word
    """For the API."""
    TICKET = "ticket"
    """For one file of a run."""


class CredentialFault(StrEnum):
    """What is wrong with a credential."""

    MISSING = "missing"
    MALFORMED = "malformed"
    """It does not have the form of one."""
    WRONG = "wrong"
    EXPIRED = "expired"
    """Only a ticket expires."""
