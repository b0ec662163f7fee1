"""Upload a picture from this folder, and a text generated for each index."""

from oku import Http


async def scenario(index: int, http: Http) -> None:
    files = {
        "picture": "picture.svg",
        "note": ("note.txt", f"This is upload {index}.".encode(), "text/plain"),
    }
    response = await http.post("/upload", files=files, data={"album": "tea"}, name="upload", expect=201)
    response.check(response.json("/fields/album") == "tea", "the album is not tea")
