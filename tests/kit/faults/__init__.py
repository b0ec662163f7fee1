"""What goes wrong: attacks, failing tasks and statements, clocks that are set, mutated bytes."""
