"""A simulation of Oku: the real code on simulated time, processes, network, broker and disk."""
