"""The delay server: answers after a delay, counts what it served, misbehaves on request."""
