"""Bounds of CPU time that do not depend on the machine's pace."""

from __future__ import annotations

from typing import Final

LINEAR_S: Final = 10.0
"""CPU seconds that a hostile text of 128 KiB may take.

Linear code takes up to one second, and up to three where other processes share its core's caches.
Quadratic code takes 17 seconds if a step costs one nanosecond, and one in Python costs 50.
"""
