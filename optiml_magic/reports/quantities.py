"""Figures for people: three significant digits and a unit."""

from __future__ import annotations

_TIMES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"))


def seconds(value: float) -> str:
    """A duration such as ``12.3 us``."""
    for scale, unit in _TIMES:
        if value >= scale:
            return f"{value / scale:.3g} {unit}"
    return "0 s"


def ratio(value: float) -> str:
    """A speed-up such as ``2.41x``."""
    return f"{value:.3g}x" if value < 100 else f"{value:.0f}x"


def number_of(count: int, noun: str) -> str:
    """Such as ``1 evaluation`` and ``5 evaluations``."""
    plural = "es" if noun.endswith(("s", "x", "ch", "sh")) else "s"
    return f"{count} {noun}" if count == 1 else f"{count} {noun}{plural}"


def count(value: float) -> str:
    """A count such as ``1.05e+06`` or ``96``."""
    return f"{value:.0f}" if abs(value) < 1e6 and value == int(value) else f"{value:.3g}"


def percent(share: float) -> str:
    """A share of 0 to 1 such as ``42 %``, ``0.3 %`` and ``<0.1 %``."""
    value = 100 * share
    if 0 < value < 0.1:
        return "<0.1 %"
    return f"{value:.0f} %" if value >= 9.95 or not value else f"{value:.1f} %"
