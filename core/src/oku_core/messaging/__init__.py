"""The messages between coordinator and workers: what they say, how they are signed, and how they travel."""
