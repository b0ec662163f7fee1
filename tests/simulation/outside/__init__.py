"""What is outside of Oku: the network, the broker and the target of the requests."""
