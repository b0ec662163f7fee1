"""How many requests of each run were served, over all processes of a server."""
