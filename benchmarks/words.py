"""Numbers and times as the tables show them."""


def shown(number: float) -> str:
    """Two digits: 0.12, 3.4, 29, 1,900."""
    return f"{float(f'{number:.2g}'):,.10g}"


def time(seconds: float) -> str:
    """Two digits, and a unit."""
    if seconds >= 0.995:
        return f"{shown(seconds)} s"
    if seconds >= 0.995e-3:
        return f"{shown(1e3 * seconds)} ms"
    return f"{shown(1e6 * seconds)} µs"
