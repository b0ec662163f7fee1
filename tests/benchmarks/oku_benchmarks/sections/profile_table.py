"""Profiles of requests as a table, and in words where one costs more than another."""

from collections.abc import Sequence

from oku_benchmarks.cases.request_profile import Profile
from oku_benchmarks.sections.section import NONE, build_table

NO_PROFILE = "There is no profile: perf is not installed, or not permitted."
_LEAST_SHOWN_US = 0.1


def build_profile_table(profiles: Sequence[Profile]) -> str:
    """All of them, in µs of one request, the largest part first."""
    parts = {part for profile in profiles for part in profile.shares}
    largest = sorted(parts, key=lambda part: (-max(each.measure_us(part) for each in profiles), part))
    rows = [
        [
            f"{profile.kind}: {profile.contestant}",
            f"{profile.cpu_us:.1f}",
            *(f"{us:.2f}" if (us := profile.measure_us(part)) else NONE for part in largest),
        ]
        for profile in profiles
    ]
    return build_table(["", "all", *largest], rows)


def explain_difference(own: Profile, other: Profile) -> str:
    """What makes a request of Oku dearer than one of another contestant, the largest part first."""
    differences = {
        part: own.measure_us(part) - other.measure_us(part)
        for part in own.shares.keys() | other.shares.keys()
    }
    shown = [
        f"{part} {difference:+.1f}"
        for part, difference in sorted(differences.items(), key=lambda item: (-abs(item[1]), item[0]))
        if abs(difference) >= _LEAST_SHOWN_US
    ]
    return (
        f"For `{own.kind}` a request takes {own.cpu_us - other.cpu_us:.1f} µs more of Oku's worker than of"
        f" {other.contestant}: {', '.join(shown)}."
    )


def explain_differences(profiles: Sequence[Profile], kinds: Sequence[str], names: tuple[str, str]) -> str:
    """That for some kinds of answers, as far as there are profiles of both contestants."""
    by_name = {(profile.kind, profile.contestant): profile for profile in profiles}
    pairs = [(by_name.get((kind, names[0])), by_name.get((kind, names[1]))) for kind in kinds]
    return " ".join(explain_difference(own, other) for own, other in pairs if own and other)
