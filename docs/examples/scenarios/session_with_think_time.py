"""Browse as a person does: with pauses, and with a session's cookies."""

from oku import Http


async def scenario(http: Http) -> None:
    await http.get("/", name="home")
    for product in ("tea", "cups"):
        await http.think("10ms..30ms")
        await http.get(f"/products/{product}", name="product")
        await http.think("10ms..30ms")
        await http.post("/cart", data={"product": product}, name="fill cart", expect=201)
    cart = await http.get("/cart", name="cart")
    cart.check(cart.json("/lines") == 2, "the cart does not have two lines")
