"""What the tests of the simulation share."""

# Before any code of Oku: see the module.
import tests.simulation.machine.interposition  # noqa: F401
