"""Values with a unit as Grafana writes them: the units that the dashboards use."""

_DURATIONS = ((86400, "d"), (3600, "hour"), (60, "min"), (1, "s"))


def format_value(value: float, unit: str, decimals: int | None) -> str:
    """A value with its unit, to about three digits unless told how many decimals."""
    match unit:
        case "locale":
            return f"{value:,.{decimals or 0}f}"
        case "percentunit":
            digits = 0 if decimals is None and value * 100 == round(value * 100) else decimals
            return f"{value * 100:.{1 if digits is None else digits}f}%"
        case "ms" | "s":
            return _format_duration(value / (1000 if unit == "ms" else 1))
        case "decbytes" | "decmbytes" | "Bps":
            size = value * 1e6 if unit == "decmbytes" else value
            return f"{_scale(size, ('', 'k', 'M', 'G', 'T'), ' ')}B{'/s' if unit == 'Bps' else ''}"
        case "reqps":
            return f"{_scale(value, ('', 'K', 'Mil', 'Bil'), ' ')} req/s".replace("  ", " ")
        case _:
            return _scale(value, ("", "K", "Mil", "Bil"), " ").strip()


def _format_duration(seconds: float) -> str:
    if seconds == 0:
        return "0 s"
    if seconds < 1:
        return f"{_round(seconds * 1000)} ms" if seconds >= 0.001 else f"{_round(seconds * 1e6)} µs"
    size, name = next((size, name) for size, name in _DURATIONS if seconds >= size)
    return f"{_round(seconds / size)} {name}"


def _scale(value: float, prefixes: tuple[str, ...], gap: str) -> str:
    step = 0
    while abs(value) >= 1000 and step < len(prefixes) - 1:
        value, step = value / 1000, step + 1
    return f"{_round(value)}{gap}{prefixes[step]}"


def _round(value: float) -> str:
    """Three digits, without zeros that say nothing."""
    if value == 0:
        return "0"
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    text = f"{value:.{digits}f}" if abs(value) >= 0.01 else f"{value:.2g}"
    return text.rstrip("0").rstrip(".") if "." in text else text
