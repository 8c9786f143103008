"""Tests of the formats of files by place, content and name."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman_documents.recognition import format_of

ANDROID = '<?xml version="1.0"?>\n<!-- licence --><resources>\n<{} name="a">A</{}>\n</resources>'


@pytest.mark.parametrize(
    ("path", "content", "expected"),
    [
        ("_locales/en/messages.json", "{}", "chrome"),
        ("locales/en/messages.json", "{}", "json"),
        ("_locales/en/other.json", "{}", "json"),
        ("app/res/values/texts.xml", ANDROID.format("string", "string"), "android"),
        ("res/values-en-rUS/a.xml", ANDROID.format("string-array", "string-array"), "android"),
        ("res/values/quantities.xml", ANDROID.format("plurals", "plurals"), "android"),
        ("res/values/colors.xml", ANDROID.format("color", "color"), None),
        ("res/layout/main.xml", ANDROID.format("string", "string"), None),
        ("strings.xml", "", "android"),
        ("app_de.ts", '<?xml version="1.0" encoding="utf-8"?>\n<!DOCTYPE TS>\n<TS>', "qt"),
        ("app.ts", '\ufeff<TS version="2.1">', "qt"),
        ("app.ts", '<?xml version="1.0"?><TS>', "qt"),
        ("app.ts", "<?xml version='1.0'?>\n<!-- a --><!-- b -->\n<TS>", "qt"),
        ("code.ts", "const x = '<!DOCTYPE TS>';", None),
        ("code.ts", "<!-- a -->" * 6_000, None),
        ("code.ts", "const a: Array<TS> = [];", None),
        ("code.ts", "<TS>(a: TS) => a;", None),
        ("code.ts", "<TS extends A>(a: TS) => a;", None),
        ("code.ts", "", None),
        ("a.mkd", "", "markdown"),
        ("A.Rmd", "", "markdown"),
        ("a.qmd", "", "markdown"),
    ],
)
def test_a_format_is_known_by_place_content_or_name(
    tmp_path: Path, path: str, content: str, expected: str | None
) -> None:
    file = tmp_path / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content, encoding="utf-8")
    assert format_of(file) == expected


def test_utf_16_is_looked_into(tmp_path: Path) -> None:
    file = tmp_path / "app.ts"
    file.write_text("<!DOCTYPE TS><TS>", encoding="utf-16")
    assert format_of(file) == "qt"


def test_a_file_that_cannot_be_read_has_the_format_of_its_name(tmp_path: Path) -> None:
    assert format_of(tmp_path / "gone.ts") is None
