"""Leases: how large they are, who gets them, and when one expires."""
