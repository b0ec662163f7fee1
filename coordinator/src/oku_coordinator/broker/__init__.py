"""The coordinator's two ways over the broker: to its workers and from them."""
