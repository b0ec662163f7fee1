"""Stacks of real processes from any checkout, and a target that knows what really reached it."""
