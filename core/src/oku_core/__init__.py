"""The domain of Oku as types: runs, the division of their request space, messages and summaries.

Nothing in here does I/O but `messaging`, which knows Celery; everything else is values and pure functions.
"""
