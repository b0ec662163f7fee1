"""Read a list page by page, each under the same name, up to the last page."""

from oku import Http


async def scenario(index: int, http: Http) -> None:
    token = await http.post("/login", json={"user": index}, name="login").json("/token")
    page, orders = "/orders?page=1", []
    while page:
        document = await http.get(page, bearer=token, name="page of orders").json()
        orders += document["orders"]
        page = document["next"]
    http.check(len(orders) == 7, f"there are {len(orders)} orders, not 7")
