"""The `oku` command: runs on a laptop with a local stack, or against a coordinator elsewhere."""
