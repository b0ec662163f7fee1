"""The default engine: aiohttp's client."""
