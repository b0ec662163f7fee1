"""The words of Oku as types: what a run is, how its request space is cut, and what is said of it.

Nothing in here does I/O but `messaging`, which knows Celery; everything else is values and pure functions.
"""
