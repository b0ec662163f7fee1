"""Log in, and show an order with the token."""

from oku import Http


async def scenario(index: int, http: Http) -> None:
    token = await http.post("/login", json={"user": index}, name="login").json("/token")
    await http.get("/orders/{i}", bearer=token, name="order")
