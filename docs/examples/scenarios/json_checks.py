"""Check a response: as part of its request, afterwards, and with a plain assert."""

from oku import Http, record


async def scenario(index: int, http: Http) -> None:
    token = await http.post("/login", json={"user": index}, name="login").json("/token")
    order = await http.get("/orders/{i}", bearer=token, name="order").check(
        lambda response: response.json("/id") == index, "wrong order"
    )
    items = order.json("/items")
    order.check(items[0]["count"] > 0, "the first item has no count")
    async with record("price of all"):
        prices = [await http.get(f"/products/{each['sku']}", name="product").json("/price") for each in items]
    assert sum(prices) < 100, f"an order of {sum(prices)} is too expensive"
