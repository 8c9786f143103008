"""Planted errors: human translations damaged in the ways in which models damage them."""

from __future__ import annotations

from typing import Final

import planted_chat
import planted_code
import planted_form
import planted_language
import planted_numbers
import planted_size
from planting import Kind

GROUPS: Final[dict[str, tuple[Kind, ...]]] = {
    "chat": planted_chat.KINDS,
    "language": planted_language.KINDS,
    "size": planted_size.KINDS,
    "code": planted_code.KINDS,
    "numbers": planted_numbers.KINDS,
    "form": planted_form.KINDS,
}
"""All kinds, by the module that plants them."""
