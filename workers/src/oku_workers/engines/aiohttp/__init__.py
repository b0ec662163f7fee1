"""The engine with all features of HTTP/1.1: aiohttp's client."""
