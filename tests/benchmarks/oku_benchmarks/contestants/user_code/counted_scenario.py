"""One request with the index in its path, for a target that counts them."""

from oku import Http


async def scenario(http: Http) -> None:
    """Ask for the item of this iteration."""
    await http.get("/{i}")
