"""Reads the token of the API from flags, variables and Secrets."""

from oku_core.errors import UserError

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
