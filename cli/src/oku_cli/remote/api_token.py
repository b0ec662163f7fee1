"""Reads the token of the API from flags, variables and Secrets."""

from oku_core.errors import UserError
from oku_core.messaging.credentials import HOW_TO_MAKE, find_weakness

GIVEN = "--token (OKU_TOKEN)"
"""Names the source of a token that the user gave."""


def read_token(text: str, source: str = GIVEN) -> str:
    """Return the token without surrounding blanks and line breaks.

    Raises:
        UserError: nothing is left of it, or no HTTP header can carry it. The message names `source`, and
            does not show the token.
    """
    token = text.strip()
    if not token:
        raise UserError(f"{source}: is empty")
    if not all("!" <= character <= "~" for character in token):
        raise UserError(f"{source}: has other than printable ASCII characters without spaces")
    return token


def read_own_token(text: str) -> str:
    """Return the token that a coordinator will require of its callers.

    A client sends whatever its coordinator was given, so only the coordinator judges it.

    Raises:
        UserError: as `read_token`, or it is easy to guess.
    """
    token = read_token(text)
    if weakness := find_weakness(token.encode(), "characters"):
        raise UserError(f"{GIVEN}: {weakness}; make one: export OKU_TOKEN={HOW_TO_MAKE}")
    return token
