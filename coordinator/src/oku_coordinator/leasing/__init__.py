"""Leases: their sizes, their recipients, and their expiry."""
