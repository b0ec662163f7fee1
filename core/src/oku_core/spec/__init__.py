"""The spec of a run: what may stand in it, how it is read, and what each request is."""
