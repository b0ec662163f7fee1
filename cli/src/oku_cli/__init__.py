"""The `oku` command: runs on a laptop with a local stack, or at a remote coordinator."""
