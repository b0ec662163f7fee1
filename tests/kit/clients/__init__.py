"""Odd targets, and every client of Oku to ask them."""
