"""The coordinator's side of the broker: messages to and from its workers."""
