"""The review page in a real browser: keyboard, edits, hostile text, widths and colour schemes.

usage: review_page.py [--chromium /usr/bin/chromium] [--segments 10000] [--out DIR]

Needs `pip install playwright` and a Chromium. Prints seconds to open and to search a page of
`--segments` segments, what the keyboard alone does, whether anything overflows a window 320 pixels
wide, and what the page wrote to the browser's console, which must be nothing. With `--out` pictures
are written.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from playwright.sync_api import Browser, Page, sync_playwright

from dragoman_producer.review.page import Review, ReviewRow, RowFinding, pages

HOSTILE: Final = (
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "\u202eright to left\u202c and a blank without width: \u200b.",
    "a" * 400,
    "مرحبا <g1>بالعالم</g1>",
    "日本語のテキスト。<x1/>",
    "\0 and \u2028",
    "${policy} $data {{data}}",
)
VERDICTS: Final = ("ok", "warn", "fail", "unchecked")
FINDINGS: Final = (
    RowFinding("length", "1.9 times the usual"),
    RowFinding("placeholders", "1 missing"),
)


def rows(count: int) -> list[ReviewRow]:
    """Return segments with hostile texts among them."""
    made = []
    for number in range(count):
        odd = HOSTILE[number % len(HOSTILE)]
        verdict = VERDICTS[number % 7 % 4]
        made.append(
            ReviewRow(
                document=f"guide/chapter-{number % 7}.md",
                segment=number,
                place=f"line {3 * number + 1}",
                source=f"Click <g1>Save</g1> or press <x2/>. {odd}" if number % 3 else odd,
                target=None if number % 11 == 5 else f"<g1>Sichern</g1> oder <x2/>. {odd}",
                verdict=verdict,  # type: ignore[arg-type]
                findings=() if verdict == "ok" else FINDINGS,
                origin="memory" if number % 5 == 0 else "new",
            )
        )
    return made


def written(folder: Path, count: int) -> Path:
    """Write the page and return its path."""
    review = Review("bench", "de", "en", "dragoman review out --apply edits-de-1.json")
    for name, text in pages(review, rows(count), count):
        (folder / name).write_text(text, encoding="utf-8")
    return folder / "review-de.html"


def opened(browser: Browser, path: Path, said: list[str], **options: Any) -> Page:
    """Open the page in a fresh context."""
    page = browser.new_context(**options).new_page()
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("dialog", lambda dialog: (said.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    page.on("request", lambda asked: asked.url == path.as_uri() or said.append(asked.url))
    page.goto(path.as_uri())
    page.wait_for_selector("article")
    return page


def by_keyboard(page: Page) -> dict[str, Any]:
    """Edit one segment, approve another and undo that, without the mouse."""
    for key in ("j", "j", "Enter", "Control+a"):
        page.keyboard.press(key)
    page.keyboard.type("Neu <g1>x</g1> <x2/>")
    for key in ("Control+Enter", "a", "j", "a", "u"):
        page.keyboard.press(key)
    with page.expect_download() as downloading:
        page.click("#download")
    edits = json.loads(Path(downloading.value.path()).read_text(encoding="utf-8"))["edits"]
    page.reload()
    kept = page.inner_text("#count")
    return {"edited": [edit["segment"] for edit in edits], "after a reload": kept}


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--chromium", default="/usr/bin/chromium")
    parser.add_argument("--segments", type=int, default=10_000)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    said: list[str] = []
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        path = written(Path(name), given.segments)
        browser = playwright.chromium.launch(executable_path=given.chromium, args=["--no-sandbox"])
        began = time.perf_counter()
        page = opened(browser, path, said)
        print(f"{given.segments} segments, {path.stat().st_size / 1e6:.1f} MB")
        print(f"open: {time.perf_counter() - began:.2f} s")
        print(by_keyboard(page))
        began = time.perf_counter()
        page.fill("#search", "press")
        print(f"search: {page.inner_text('#count')}, {time.perf_counter() - began:.2f} s")
        for scheme in ("light", "dark"):
            for width in (1280, 320):
                view = {"width": width, "height": 900}
                page = opened(browser, path, said, color_scheme=scheme, viewport=view)
                wide = page.evaluate("document.documentElement.scrollWidth")
                print(f"{scheme}, {width} px: the page is {wide} px wide")
                if given.out:
                    page.screenshot(path=given.out / f"review-{scheme}-{width}.png")
        browser.close()
    print(f"console and requests: {said or 'nothing'}")


if __name__ == "__main__":
    main()
