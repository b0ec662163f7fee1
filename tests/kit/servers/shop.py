"""A small shop with accounts, pages, uploads and odd answers: what scenarios are tried on."""

import asyncio
import gzip
from collections import Counter
from typing import Any, Self

from aiohttp import web

PAGES = ((1, 2, 3), (4, 5, 6), (7,))
"""The orders of each user, page by page."""


class Shop:
    """Serves from entering to leaving.

    Attributes:
        asked: how often each place was asked, as `METHOD /path` with the names of its parts.
        connections: how many connections were made to it.
        tokens: the tokens that were given out, by user.
        uploads: what was uploaded: name of the field, name of the file, content type and content.
    """

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        self.connections = 0
        self.tokens: dict[str, object] = {}
        self.uploads: list[tuple[str, str | None, str, bytes]] = []
        self.url = ""
        self._runner: web.AppRunner

    async def __aenter__(self) -> Self:
        """Begin."""
        app = web.Application(middlewares=[self._count])
        app.add_routes(
            [
                web.get("/", self._show_home),
                web.post("/login", self._log_in),
                web.get("/orders/{id}", self._show_order),
                web.get("/orders", self._list_orders),
                web.get("/products/{id}", self._show_product),
                web.post("/cart", self._fill_cart),
                web.get("/cart", self._show_cart),
                web.post("/upload", self._take_upload),
                web.route("*", "/echo", self._echo),
                web.get("/echo/{rest:.*}", self._echo),
                web.get("/status/{status}", self._answer_status),
                web.get("/slow", self._answer_slowly),
                web.get("/gzip", self._answer_gzip),
                web.route("*", "/redirect/{times}", self._redirect),
                web.get("/leave", self._leave),
                web.get("/hang-up", self._hang_up),
                web.get("/nonsense", self._answer_nonsense),
            ]
        )
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        """End."""
        await self._runner.cleanup()

    @web.middleware
    async def _count(self, request: web.Request, handler: Any) -> web.StreamResponse:
        resource = request.match_info.route.resource
        place = request.path if resource is None else resource.canonical
        self.asked[f"{request.method} {place}"] += 1
        transport = request.transport
        if transport is not None and not getattr(transport, "is_known", False):
            transport.is_known = True  # type: ignore[attr-defined]
            self.connections += 1
        response: web.StreamResponse = await handler(request)
        return response

    async def _show_home(self, _: web.Request) -> web.Response:
        return web.Response(text="<h1>Welcome</h1>", content_type="text/html")

    async def _log_in(self, request: web.Request) -> web.Response:
        user = (await request.json())["user"]
        token = f"token-{user}"
        self.tokens[token] = user
        response = web.json_response({"token": token})
        response.set_cookie("session", token)
        return response

    async def _show_order(self, request: web.Request) -> web.Response:
        self._find_user(request)
        order = int(request.match_info["id"])
        return web.json_response({"id": order, "state": "paid", "items": [{"sku": "tea", "count": 2}]})

    async def _list_orders(self, request: web.Request) -> web.Response:
        self._find_user(request)
        page = int(request.query.get("page", "1"))
        following = f"/orders?page={page + 1}" if page < len(PAGES) else None
        return web.json_response({"orders": [{"id": order} for order in PAGES[page - 1]], "next": following})

    async def _show_product(self, request: web.Request) -> web.Response:
        return web.json_response({"id": request.match_info["id"], "price": 3.5})

    async def _fill_cart(self, request: web.Request) -> web.Response:
        lines = int(request.cookies.get("cart", "0")) + 1
        response = web.json_response({"lines": lines}, status=201)
        response.set_cookie("cart", str(lines))
        return response

    async def _show_cart(self, request: web.Request) -> web.Response:
        return web.json_response({"lines": int(request.cookies.get("cart", "0"))})

    async def _take_upload(self, request: web.Request) -> web.Response:
        fields, size = {}, 0
        for name, value in (await request.post()).items():
            if isinstance(value, web.FileField):
                content = value.file.read()
                self.uploads.append((name, value.filename, value.content_type, content))
                size += len(content)
            else:
                fields[name] = value
        return web.json_response({"size": size, "fields": fields}, status=201)

    async def _echo(self, request: web.Request) -> web.Response:
        headers = [[name, value] for name, value in request.headers.items()]
        body = (await request.read()).decode("utf-8", "replace")
        told = {"method": request.method, "target": request.raw_path, "headers": headers, "body": body}
        return web.json_response(told)

    async def _answer_status(self, request: web.Request) -> web.Response:
        return web.Response(status=int(request.match_info["status"]))

    async def _answer_slowly(self, _: web.Request) -> web.Response:
        await asyncio.sleep(30)
        return web.Response()

    async def _answer_gzip(self, _: web.Request) -> web.Response:
        body = gzip.compress(b'{"tea": "green"}')
        return web.Response(body=body, headers={"Content-Encoding": "gzip", "Content-Type": "text/json"})

    async def _redirect(self, request: web.Request) -> web.Response:
        times = int(request.match_info["times"])
        location = f"/redirect/{times - 1}" if times > 1 else "/echo"
        response = web.Response(
            status=int(request.query.get("status", "302")), headers={"Location": location}
        )
        response.set_cookie("way", str(times))
        return response

    async def _leave(self, request: web.Request) -> web.Response:
        return web.Response(status=302, headers={"Location": request.query["to"]})

    async def _hang_up(self, request: web.Request) -> web.Response:
        assert request.transport is not None
        request.transport.close()
        return web.Response()

    async def _answer_nonsense(self, request: web.Request) -> web.Response:
        assert request.transport is not None
        request.transport.write(b"SMTP ready\r\n\r\n")
        return await self._hang_up(request)

    def _find_user(self, request: web.Request) -> object:
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if token not in self.tokens:
            raise web.HTTPUnauthorized
        return self.tokens[token]
