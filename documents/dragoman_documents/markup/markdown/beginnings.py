"""What begins a block: no line break of a translation may stand in front of it."""

from __future__ import annotations

from typing import Final

MARK: Final = "\ufdd0"
END: Final = "\ufdd1"
"""Around line breaks while a translation is written: characters that no text may have."""

BEGINNING: Final = (
    r"(?:>|#|=+[ \t]*(?:[\r\n\ufdd0]|\Z)|===|:[: \t\ufdd0]|:[\w\-]+:|[{|]|%[% \t\ufdd0]"
    r"|~[ \t\ufdd0]|\${2}|\([\w.:+\-]+\)="
    r"|\[(?:!|[^\]\r\n]*\]:)|\\[A-Za-z]|<(?:[A-Za-z/!?]|<<)|`{3}|~{3}|\*\["
    r"|[-+*](?:[ \t\r\n\ufdd0]|\Z)|-{2}|_{3}|\*{3}|\+[-=]|;-|!!!|\?\?\?|///"
    r"|(?:[0-9]{1,9}|[A-Za-z]|[ivxIVX]{1,6})[.)](?:[ \t\r\n\ufdd0]|\Z)"
    r"|\((?:@[\w\-]*|[A-Za-z0-9]|[ivxIVX]{1,5})\)[ \t\ufdd0]"
    r"|(?:import|export)[ \t{*\ufdd0])"
)
"""The beginning of a line that some generator reads as another block."""
