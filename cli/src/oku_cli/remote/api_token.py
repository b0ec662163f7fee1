"""The token of the API, as it comes from flags, variables and Secrets."""

from oku_core.errors import UserError

GIVEN = "--token (OKU_TOKEN)"
"""Where one comes from that was given."""


def read_token(text: str, source: str = GIVEN) -> str:
    """The token without blanks and line breaks around it.

    Raises:
        UserError: nothing is left of it, or no HTTP header can bear it. The line names `source`, and does
            not show the token.
    """
    token = text.strip()
    if not token:
        raise UserError(f"{source}: is empty")
    if not all("!" <= character <= "~" for character in token):
        raise UserError(f"{source}: has other than printable ASCII characters without spaces")
    return token
