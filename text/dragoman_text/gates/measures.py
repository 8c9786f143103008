"""Measures of one system in those of another: translators write 10 miles as 16 km."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

_UNITS: Final = re.compile(
    r"\b(?:inch|foot|feet|mile|yard|pound|lbs?\b|ounce|gallon|acre|mph\b|degree|fahrenheit)"
    r"|°\s?F|[0-9]['’″\"]",
    re.IGNORECASE,
)
_FACTORS: Final = (1.609, 2.54, 25.4, 0.3048, 30.48, 0.9144, 0.4536, 3.785, 4.546, 0.4047, 28.35)
"""Kilometers, centimeters and millimeters, meters (feet, yards), kilograms, liters, hectares, g."""
_ROUNDED: Final = 0.12
_LONGEST: Final = 9


def is_converted(value: str, added: Iterable[str], source: str) -> bool:
    """Return whether one of the numbers that the answer adds is the value in metric measures."""
    if len(value) > _LONGEST or _UNITS.search(source) is None:
        return False
    given = float(value)
    wanted = [given * factor for factor in _FACTORS]
    found = [float(each) for each in added if len(each) <= _LONGEST]
    if any(abs(each - (given - 32) / 1.8) <= 1 for each in found):
        return True
    return any(abs(each - other) <= _ROUNDED * other for each in found for other in wanted)
