# ruff: noqa: E501  rows of constructs
"""Random Markdown of the dialects of sites, for `fuzz.py`.

A document is blocks of its dialect's constructs and of CommonMark's, nested in lists, quotes and
admonitions, some of them unfinished, with odd spacing and either kind of line break.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple


class Dialect(NamedTuple):
    """What a site's pages have beyond CommonMark; `@` stands for words, `&` for inline text."""

    format: str
    site: str | None
    inlines: Sequence[str]
    blocks: Sequence[str]


_WORDS: Final = [
    "word",
    "Größe",
    "使用说明",
    "naïve",
    "12",
    "a_b",
    "x*y",
    "it's",
    "😀",
    "&",
    "<",
    ">",
    "e.g.",
    "3.5",
    "$5",
    "$6",
    "[x]",
    "{y}",
    "|",
    "~",
    "-",
]
_INLINES: Final = (
    "**@**", "*@*", "_@_", "`@`", "[@](u)", "[@](u 'T @')", "![@](i.png)", "[@][ref]", "[ref]", "<b>@</b>",
    "https://e.org/a_b(c).", "&amp;", r"\*", "[^1]", "~~@~~", "$a_1$", "  \n", "<br>", "**@", "[@", "`",
)  # fmt: skip
_BLOCKS: Final = (
    "&", "# &", "## & {#id}", "&\n&\n&", "- &\n- &\n\n  &", "1. &\n   &", "> &\n> &", "```py\n@\n```",
    "| & | & |\n|---|:-:|\n| & | & |", "&\n===", "<div>\n@\n</div>", "[ref]: u 'T @'", "[^1]: &", "---",
    "- [ ] &", "    @", "<!-- @ -->", "```\n@",
)  # fmt: skip
DIALECTS: Final[Mapping[str, Dialect]] = {
    "gfm": Dialect("markdown", None, (":smile:", "@user", "#12"), ("> [!NOTE]\n> &", "$$\na\n$$")),
    "mkdocs": Dialect(
        "markdown", "mkdocs",
        (":material-x:", "[@][pkg.C]", "[@](u){ .x }", "==@==", "{++@++}", "`#!py @`"),
        (
            '!!! note "&"\n\n    &\n\n    - &', "??? tip\n    &", '=== "@"\n\n    &', "*[HT]: @",
            "::: pkg.m\n    options:\n      a: b", '--8<-- "f.md"', "&\n{ #x .y }", "@\n:   &",
            "/// tip | @\n&\n///", "<div markdown>\n\n&\n\n</div>",
        ),
    ),
    "mdx": Dialect(
        "mdx", "docusaurus",
        ("{x}", "{'{'}", "{`${x}`}", "<A b={{c: 1}} />", "<B>@</B>", "{/* @ */}", "<>@</>"),
        (
            "import A from 'a'", "export const x = {\n\n  a: 1\n}", ":::tip @\n&\n:::",
            ":::note[@]\n&\n:::", '<T>\n<I label="@">\n&\n</I>\n<I>\n    &\n</I>\n</T>',
            "## @ \\{#id}", "<details>\n<summary>@</summary>\n\n&\n\n</details>",
        ),
    ),
    "hugo": Dialect(
        "markdown", "hugo", ('[@]({{< ref "x" >}})', "{{< x >}}", "{{ .Y }}", "`{{< highlight >}}`"),
        (
            '{{< figure src="a" title="@" >}}', "{{% note %}}\n&\n{{% /note %}}",
            "{{< highlight go >}}\n@\n\n@\n{{< /highlight >}}", "{{< tab \"@\" >}}\n&\n{{< /tab >}}",
        ),
    ),
    "jekyll": Dialect(
        "markdown", "jekyll", ("[@]({% link a.md %})", "{{ x | y }}", "*@*{: .c}"),
        (
            "{% highlight rb %}\n@\n\n@\n{% endhighlight %}", "&\n{: .x title=\"@\"}", "{:toc}",
            "{% include a.html %}", "{% raw %}\n@\n{% endraw %}", "@\n: &",
        ),
    ),
    "vitepress": Dialect(
        "markdown", "vitepress", ("{{ x }}", "<Badge text=\"@\" />", "[@](./a.md#b)"),
        ("::: tip @\n&\n:::", "[[toc]]", "<<< @/a.js{1}", "<script setup>\nlet a\n</script>"),
    ),
    "myst": Dialect(
        "markdown", "sphinx", ("{ref}`a`", "{doc}`@ <b>`", "[@]{.x}", "$a$"),
        (
            "(a)=\n# &", "% @", "```{note}\n:class: x\n\n&\n```", ":::{tip} @\n&\n:::", ":@: &",
            "```{code-block} py\n@\n```", "\\begin{align}\n@\n\\end{align}", "$$\nx\n$$ (eq)",
        ),
    ),
    "pandoc": Dialect(
        "markdown", "quarto",
        ("[@]{.x}", "[@a, p. 3]", "^[&]", "H~2~O", "x^2^", r"\(a_1\)", "[-@b]"),
        (
            "::: {.callout-note title=\"@\"}\n&\n:::", "| @\n| @", "(@ex) &", "a. &\nb. &", "@\n: &",
            "  a   b\n --- ---\n  1   2", "+---+\n| @ |\n+---+",
        ),
    ),
    "obsidian": Dialect(
        "markdown", "obsidian", ("[[@]]", "[[a|@]]", "![[a.png]]", "==@==", "%%@%%", "#tag", "^block"),
        ("> [!note]- @\n> &", "%%\n@\n%%", "![[a#b]]"),
    ),
}  # fmt: skip


def document(dialect: Dialect, rng: random.Random) -> bytes:
    """Return a random page of a dialect."""
    blocks = [_nested(_block(dialect, rng), rng) for _ in range(rng.randint(1, 8))]
    text = "".join(each + rng.choice(("\n\n", "\n\n", "\n", "\n\n\n")) for each in blocks)
    if rng.random() < 0.15:
        text = text.replace("\n", "\r\n")
    if rng.random() < 0.2:
        cut = rng.randrange(len(text))
        text = text[:cut] + text[cut + rng.randint(1, 4) :]
    return text.encode()


def _block(dialect: Dialect, rng: random.Random) -> str:
    own = rng.random() < 0.6
    text = rng.choice(dialect.blocks if own else _BLOCKS)
    while "&" in text:
        text = text.replace("&", _inline(dialect, rng), 1)
    return _filled(text, rng)


def _inline(dialect: Dialect, rng: random.Random) -> str:
    pieces = [
        rng.choice(dialect.inlines if rng.random() < 0.5 else _INLINES).replace("&", "@")
        if rng.random() < 0.4
        else "@"
        for _ in range(rng.randint(1, 6))
    ]
    return rng.choice((" ", " ", "")).join(pieces)


def _filled(text: str, rng: random.Random) -> str:
    while "@" in text:
        words = " ".join(rng.choice(_WORDS) for _ in range(rng.randint(1, 4)))
        text = text.replace("@", words.replace("@", ""), 1)
    return text


def _nested(block: str, rng: random.Random) -> str:
    """Return a block as it is, or in a list, a quote or an indented body."""
    first, rest = rng.choice((("", ""),) * 5 + (("- ", "  "), ("> ", "> "), ("1.  ", "    ")))
    return first + block.replace("\n", "\n" + rest)
