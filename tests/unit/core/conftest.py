"""How hypothesis looks for counterexamples here: without a time limit, for a laptop may be busy."""

from hypothesis import settings

settings.register_profile("oku", deadline=None)
settings.load_profile("oku")
