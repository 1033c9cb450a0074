"""Numbers and times as the tables show them."""


def shown(number: float) -> str:
    """Two digits: 0.12, 3.4, 29, 1,900."""
    return f"{float(f'{number:.2g}'):,.10g}"


def time(seconds: float) -> str:
    """Two digits, and a unit."""
    for unit, size in ("s", 1.0), ("ms", 1e-3):
        if seconds >= 0.995 * size:
            return f"{shown(seconds / size)} {unit}"
    return f"{shown(seconds / 1e-6)} µs"
