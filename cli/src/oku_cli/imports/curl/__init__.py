"""Reads curl commands, as bash or Windows splits them."""
