"""Numbers and times as the tables show them."""


def two_digits(number: float) -> str:
    """A number to two digits: 0.12, 3.4, 29, 1,900."""
    return f"{float(f'{number:.2g}'):,.10g}"


def time(seconds: float) -> str:
    """A time to two digits, with its unit."""
    if seconds >= 0.995:
        return f"{two_digits(seconds)} s"
    if seconds >= 0.995e-3:
        return f"{two_digits(1e3 * seconds)} ms"
    return f"{two_digits(1e6 * seconds)} µs"
