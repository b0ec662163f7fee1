"""Why a caller is refused: the credential that it needs, and what is wrong with it."""

from enum import StrEnum


class Credential(StrEnum):
    """What a caller must present."""

    TOKEN = "token"  # noqa: S105  # the word
    """For the API."""
    TICKET = "ticket"
    """For one file of a run."""


class Refusal(StrEnum):
    """What is wrong with it."""

    MISSING = "missing"
    MALFORMED = "malformed"
    """It is not of the form that it has."""
    WRONG = "wrong"
    EXPIRED = "expired"
    """Only a ticket expires."""
