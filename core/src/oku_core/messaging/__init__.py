"""The messages between coordinator and workers: what they contain, and how they are encoded and signed."""
