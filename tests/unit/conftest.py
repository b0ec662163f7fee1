"""How properties are tried: on a busy machine neither an example nor its making has a time limit."""

from hypothesis import HealthCheck, settings

settings.register_profile("oku", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("oku")
