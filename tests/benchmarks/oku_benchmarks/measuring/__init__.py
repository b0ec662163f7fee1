"""Processor time, memory and requests of processes, seen from outside, and the machine they run on."""
