from oku.client.cookie_store import CookieStore

URL = "http://127.0.0.1:8080/a/b"


def answer(*cookies: str, name: str = "Set-Cookie") -> bytes:
    """The head of an answer that sets cookies."""
    lines = "".join(f"{name}: {cookie}\r\n" for cookie in cookies)
    return f"HTTP/1.1 200 OK\r\nX: set-cookie: no=1\r\n{lines}\r\n".encode()


async def test_cookies_go_back_where_they_belong() -> None:
    """By host and path, also of addresses; as they were written."""
    store = CookieStore()
    store.take_in(answer("a=1; Path=/", 'b="x y"; Path=/a', "c=3; Path=/other"), URL)
    assert store.find("http://127.0.0.1:8080/a") == 'a=1; b="x y"'
    assert store.find("http://127.0.0.1/other") == "a=1; c=3"
    assert store.find("http://127.0.0.2/") == ""


async def test_the_newest_counts_until_it_ends() -> None:
    """An age of 0 deletes."""
    store = CookieStore()
    store.take_in(answer("a=1", name="SET-COOKIE"), URL)
    store.take_in(answer("a=2"), URL)
    assert store.find(URL) == "a=2"
    store.take_in(answer("a=2; Max-Age=0"), URL)
    assert store.find(URL) == ""


async def test_an_answer_without_cookies_makes_no_jar() -> None:
    """Most have none."""
    store = CookieStore()
    store.take_in(answer(), URL)
    assert store.find(URL) == ""
    store.take_in(answer("a=1"), URL)
    store.clear()
    assert store.find(URL) == ""
