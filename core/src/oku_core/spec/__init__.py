"""The spec of a run: its keys, how their values are parsed, and how each request is built from them."""
