"""The scenario of two requests for Oku."""

from oku import Http


async def scenario(http: Http) -> None:
    """Ask for two things, one after the other."""
    await http.get("/cart")
    await http.get("/order")
