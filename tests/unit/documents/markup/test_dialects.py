"""Markdown as sites write it: each construct stays, and the text in it is translated."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_documents import registry
from dragoman_documents.codec import Options
from dragoman_documents.putting_back import put_back
from dragoman_documents.recognition import format_of
from dragoman_documents.site_recognition import Sites

ENGLISH = Options("en", "en")

# Format and document, and the texts that are sent.
CASES = {
    "jekyll": (
        ("- See [a post]({% post_url 2024-01-01-a %}) and [#12]({{ site.repo }}/issues/12).\n\n"
        '{% highlight ruby %}\ndef show\n\n  puts "x"\nend\n{% endhighlight %}\n'
        '{: .wide title="A title"}\n\n{% include note.html %}\nText.\n'),
        ["See <g1>a post</g1> and <g2>#12</g2>.", "A title", "Text."],
    ),
    "hugo": (
        ('See [other]({{< ref "other.md" >}}).\n\n{{< code-toggle file=hugo >}}\n[[menus.main]]\n'
        'name = "About"\n{{< /code-toggle >}}\n\n{{< figure src="a.png" title="A lamp" >}}\n\n'
        "Write `{{< highlight >}}` so.\n\n{{% note %}}\nA note.\n{{% /note %}}\n"),
        ["See <g1>other</g1>.", "A lamp", "Write <x1/> so.", "A note."],
    ),
    "mkdocs": (
        ("It rose from $1,050 to $4,300.\n\nPlease [open it][a]:\n\n[a]: https://e.org\n\n"
        "*[HTML]: Hyper Text\n\nSee [`C`][pkg.C] and [x](y){:target=\"_blank\"}.\n\n"
        '--8<-- "s.md"\n\n- :material-check: **Done**\n\n::: pkg.module\n    options:\n'
        "      show: true\n\nPlease rate.\n{ #feedback style=\"margin: 0\" }\n"),
        [
            "It rose from $1,050 to $4,300.", "Please <g1>open it</g1>:", "Hyper Text",
            "See <g1><x2/></g1> and <g3>x</g3>.", "Done", "Please rate.",
        ],
    ),
    "admonitions": (
        ('!!! tip "Own title"\n\n    Whole body\n    of the tip.\n\n    ```py\n'
        '    code\n    ```\n\n'
        '=== "First tab"\n\n    Text in it.\n\n    - item\n\n/// tip | Title\nText.\n///\n\n'
        "{* ../x.py hl[3] *}\n"),
        [
            "Own title", "Whole body of the tip.", "First tab", "Text in it.", "item", "Title",
            "Text.",
        ],
    ),
    "myst": (
        ("(my-label)=\n\n# Title\n\n% a comment\n\nSee {ref}`my-label`.\n\n:::{note} Named\n"
        ":class: dropdown\n\nText.\n:::\n\n```{warning}\n:name: x\nBody.\n```\n\n"
        "```{code-block} python\nx = 1\n```\n\n\\begin{equation}\na_1 = b\n\\end{equation}\n"),
        ["Title", "See <x1/>.", "Named", "Text.", "Body."],
    ),
    "pandoc": (
        ("A [span]{.caps} and [@doe99, p. 3].\n\nNote.^[Text of it.]\n\nH~2~O, x^2^.\n\n"
        "Math \\(a_1 + b_1\\) here.\n\n| first line\n| second line\n\n"
        "::: {.callout-note title=\"T t\"}\nInside.\n:::\n"),
        [
            "A <g1>span</g1> and <x2/>.", "Note.<g1>Text of it.</g1>", "H<x1/>O, x<x2/>.",
            "Math <x1/> here.", "first line", "second line", "T t", "Inside.",
        ],
    ),
    "obsidian": (
        ("> [!note]- Title of it\n> Body of it.\n\n"
        "See [[Wiki Page]], ![[a.png]].\n\n"
        "%%\nhidden\n%%\n"),
        ["Title of it", "Body of it.", "See <x1/>, <x2/>."],
    ),
    "vitepress": (
        "[[toc]]\n\n<<< @/snippets/code.js{2,4}\n\n::: tip Own title\nText {{ x }}.\n:::\n",
        ["Own title", "Text <x1/>."],
    ),
    "tags with titles": (
        (
            'A <abbr title="Some words.">x</abbr> <img src="a" alt="An image" title="T t"> b.\n\n'
            'A `<b title="code">` and <code title="in code">y</code>.\n'
        ),
        ["Some words.", "An image", "T t", "A <g1>x</g1> <x2/> b.", "A <x1/> and <x2/>."],
    ),
    "values of attributes": (
        (
            '{{< fig link="u?title=" class="a title=\'no\'" title="it\'s so" >}}\n\n'
            '[x](u){href="b title=\'c d\'" title="e f"}\n'
        ),
        ["it's so", "x", "e f"],
    ),
    "merge tags": (
        "Hello *|FNAME|*,\n\n%%order_id%% ships on [[date]] to ${city}.\n",
        ["Hello <x1/>,", "<x1/> ships on <x2/> to <x3/>."],
    ),
    "addresses": (
        "See https://en.wikipedia.org/wiki/Foo_(bar). Or https://e.org/x*y*z (https://a.b).\n",
        ["See <x1/>. Or <x2/> (<x3/>)."],
    ),
}  # fmt: skip
MDX = {
    "expressions": (
        (
            "Use {'{'} braces.\n\nSee https://example.org.\n\n## Three \\{#three-id}\n\n"
            "A <b>bold <C x={`${y}`} /></b> word.\n"
        ),
        ["Use <x1/> braces.", "See <x1/>.", "Three", "A <g1>bold <x2/></g1> word."],
    ),
    "components": (
        (
            "import A from './a'\n\nexport const x = {\n  a: 1,\n\n  b: 2,\n};\n\n<Tabs>\n"
            '<TabItem value="a" label="My tab">\nText of one.\n</TabItem>\n<TabItem value="b">\n'
            "    Text of two.\n\n    - item\n    </TabItem>\n</Tabs>\n\n"
            ":::tip[Own title]\nText.\n:::\n"
        ),
        ["My tab", "Text of one.", "Text of two.", "item", "Own title", "Text."],
    ),
    "tables": (
        (
            "<A>\n    | Nom | C |\n    | --- | --- |\n    | cURL | d |\n</A>\n\n"
            "<A>\n\te | f\n\t- | -\n\tg | h\n</A>\n"
        ),
        ["Nom", "C", "cURL", "d", "e", "f", "g", "h"],
    ),
    "indentation": (
        (
            "<Tab>\n\tPara here\n</Tab>\n\n<Tab>\n  text\n\n      Para there\n</Tab>\n\n"
            "1. a\n\n       # Head\n\n       ```\n       # code\n\n       code\n       ```\n\n"
            "b\n      - c\n\n>      # Quoted\n"
        ),
        ["Para here", "text", "Para there", "a", "Head", "b", "c", "Quoted"],
    ),
    "tags behind items": (
        (
            "<Step>\n  1. Aa.\n  2. Click **Add**.\n    <Frame>\n"
            '      <img src="x" />\n      Below\n    </Frame>\n</Step>\n'
        ),
        ["Aa.", "Click <g1>Add</g1>.", "Below"],
    ),
    "modules": (
        (
            "{/* Reuse it */}\nimport X from '@site/static/index.md';\n\n<X />\n\n"
            "export const a = `\n~~~md\n`\n\n{/* ## Comment */}\n\n"
            "export const b = `x\n\nRenders:\n\n`\n\n"
            "<A b={`\n~~~\n`} />\n\nText.\n"
        ),
        ["Text."],
    ),
    "attributes": (
        (
            '<A href="https://x?q=1&title=" target="b c" title="d" />\n\n'
            '<A b={() => "title=\'x y\'"} c={<>it\'s</>} title="e" />\n\n'
            'A <T title="Some words." label="More">x</T> b.\n'
        ),
        ["d", "e", "Some words.", "More", "A <g1>x</g1> b."],
    ),
    "elements in expressions": (
        "<Fig\n  text={<>it's <a href={u('api')}>N</a> here</>}\n  alt=\"a b\"\n/>\n\nText.\n",
        ["a b", "Text."],
    ),
}


@pytest.mark.parametrize(
    ("name", "document", "texts"),
    [
        *(("markdown", document, texts) for document, texts in CASES.values()),
        *(("mdx", document, texts) for document, texts in MDX.values()),
    ],
    ids=[*CASES, *MDX],
)
def test_a_dialect_keeps_its_syntax(name: str, document: str, texts: list[str]) -> None:
    codec, data = registry.codec(name), document.encode()
    found = codec.extract(data, ENGLISH)
    assert [each.text for each in found.segments] == texts
    assert found.remarks == ()
    own = [each.text for each in found.segments]
    assert codec.splice(data, found, own, ENGLISH) == data
    marked = put_back(codec, data, found, [f"Zz {text}" for text in texts], ENGLISH)
    assert (marked.tags, marked.changed) == ([], [])
    assert marked.data.decode().replace("Zz ", "") == document


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("[a] and *b", "[a] and *b"),
        ("x 2 * 3 _ 4 | 5 ~ 6", "x 2 * 3 _ 4 | 5 ~ 6"),
        ("a *b* [c](d) $1", "a \\*b* [c\\](d) $1"),
        ("- x", "\\- x"),
        (":smile: {{ x }}", "&#58;smile: &#123;{ x }}"),
    ],
)
def test_a_translation_is_escaped_no_more_than_its_reader_needs(text: str, written: str) -> None:
    codec, data = registry.codec("markdown"), b"text\n"
    found = codec.extract(data, ENGLISH)
    assert codec.splice(data, found, [text], ENGLISH).decode() == f"{written}\n"


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("eins zwei drei vier", "> eins\n> zwei\n> drei vier\n"),
        ("eins zwei - drei vier", "> eins\n> zwei - drei vier\n"),
        ("使用说明", "> 使用说明\n"),
    ],
)
def test_a_paragraph_keeps_its_lines_where_words_end(text: str, written: str) -> None:
    codec, data = registry.codec("markdown"), b"> one\n> two\n> three four\n"
    found = codec.extract(data, ENGLISH)
    assert codec.splice(data, found, [text], ENGLISH).decode() == written


@pytest.mark.parametrize(
    ("site", "source", "text", "written"),
    [
        ("mkdocs", "text", "a ==b== c", "a &#61;&#61;b&#61;&#61; c"),
        ("mkdocs", "text", "^^a^^ ^b^", "&#94;&#94;a&#94;&#94; &#94;b&#94;"),
        ("mkdocs", "text", "~5 - ~6, a == b == c, 2^3", "~5 - ~6, a == b == c, 2^3"),
        ("mkdocs", "# text", "a \\", "# a \\\\"),
        ("mkdocs", "==b== text", "==b== c", "==b== c"),
        ("quarto", r"\~10 ~ text", r"~10 ~ c", r"\~10 ~ c"),
        ("jekyll", "text", "a | b", "a \\| b"),
        ("jekyll", "# text", "a | b", "# a | b"),
        ("jekyll", "text | text", "a | b", "a | b"),
        ("sphinx", "text", "$1 or $2", "\\$1 or \\$2"),
        ("sphinx", "$1 text", "$1 or $2", "\\$1 or \\$2"),
        ("sphinx", "$1 to $2 text", "$1 or $2", "$1 or $2"),
        ("quarto", "text", "^a^ ~b~ $1 $2", "\\^a\\^ \\~b\\~ $1 $2"),
        ("obsidian", "text", "==b==", "\\=\\=b\\=\\="),
        (None, "text", "==b== ^a^ a | b", "==b== ^a^ a | b"),
    ],
)
def test_what_only_the_site_takes_for_syntax_is_escaped(
    site: str | None, source: str, text: str, written: str
) -> None:
    options = replace(ENGLISH, site=site)
    codec, data = registry.codec("markdown"), f"{source}\n".encode()
    found = codec.extract(data, options)
    assert codec.splice(data, found, [text], options).decode() == f"{written}\n"


_pieces = st.sampled_from(
    [
        "a b", "\n", "\n\n", "*", "**", "_", "`", "[", "]", "(", ")", "[x]", "[[w]]", "](u)", "|",
        "{{ t }}", "{% if %}", ":::", "!!! note", "    ", "- ", "1. ", "> ", "# ", "<b>", "</b>",
        "https://e.org/a_b", "&amp;", "\\*", "$", "~", "^", ":", "{.c}", "%", "\\(", "===", "---",
        "::: tip T", "'", '"',
    ]
)  # fmt: skip


SITES = Path(__file__).parents[3] / "data/sites"


@pytest.mark.parametrize("path", sorted(SITES.rglob("*.md*")), ids=lambda each: each.parent.name)
def test_a_page_of_a_site_is_itself_again(path: Path) -> None:
    site = Sites().of(path)
    codec, data = registry.codec(format_of(path, site) or ""), path.read_bytes()
    options = Options("en", "en", site=site.name if site else None)
    found = codec.extract(data, options)
    own: list[str | None] = [each.text for each in found.segments]
    assert codec.splice(data, found, own, options) == data


@pytest.mark.parametrize(
    ("name", "document"),
    [
        ("markdown", "a  \n \\*b\n"),
        ("markdown", "b -\na\n    : c\n"),
        ("markdown", '[a](u "b&c & d")\n\n{{< x title="b&c & d" >}}\n\n[e]: u "b&c"\n'),
        ("markdown", '{{< figure title=" a b " >}}\n\n[a](u " b ")\n'),
        ("mdx", '# a \\{b}\n\n<A label="a " />\n'),
    ],
)
def test_a_page_of_odd_spelling_is_itself_again(name: str, document: str) -> None:
    codec, data = registry.codec(name), document.encode()
    found = codec.extract(data, ENGLISH)
    own: list[str | None] = [each.text for each in found.segments]
    assert codec.splice(data, found, own, ENGLISH) == data


@pytest.mark.parametrize(
    ("source", "text", "written"),
    [
        ("b   a\n:", "[de] b   a :", "[de] b   a :"),
        (". -\ra\ra", "Zz . - a a", "Zz . - a\ra"),
        ("a  -\naaa", "[de] a  - aaa", "[de] a  - aaa"),
        ("a}aaa\n1.\n c", "Zz a}aaa 1. c", "Zz a}aaa 1.\n c"),
    ],
)
def test_a_line_break_is_never_a_hard_one_or_the_end_of_another_block(
    source: str, text: str, written: str
) -> None:
    codec, data = registry.codec("markdown"), f"{source}\n".encode()
    found = codec.extract(data, ENGLISH)
    assert codec.splice(data, found, [text], ENGLISH).decode() == f"{written}\n"


@pytest.mark.parametrize(
    ("site", "document", "texts"),
    [
        # lines of other syntax that continue a paragraph stay lines
        ("mkdocs", "> a\n>     ///\n> b\n", ["a<x1/>b"]),
        (None, "a\n    $$\n\n$$\n", ["a"]),
        # bars are lines of verse or a table only where they begin a paragraph
        (None, " | a\n|\n", ["a"]),
        (None, "|a\na\n|\n", ["|a a |"]),
        ("mkdocs", "a\n    |aa|\n", ["a |aa|"]),
        # what only looks like the definition of a link is text
        (None, "[ref]: a b\n\n[x][ref]\n", ["[ref]: a b", "x"]),
        (None, "[ref]:\n\n[ref] c\n", ["[ref]:", "[ref] c"]),
        (None, "[a b]: {{ x y }}/u\n\nc [d][a b]\n", ["c <g1>d</g1>"]),
        (None, "a\n[ref]: u\n\n[b][ref]\n", ["a [ref]: u", "b"]),
        # what the parser alone reads otherwise is sent as it is
        (None, "b\na\n    : c\n", ["b a : c"]),
        # a paragraph behind a table
        (None, "a | b\n- | -\n|\nc\n", ["a", "b", "c"]),
        # blocks of code of templates stay at the start of their line
        ("jekyll", "{% raw %}\n{% endraw %} a\n", ["a"]),
        # no line break leaves a template alone in its line
        ("hugo", "a b c d\n{{ x }} e f\n", ["a b c d <x1/> e f"]),
        # one tag in the first line makes a block of HTML
        ("vitepress", '<B a=">"/> \nc\n', None),
        ("obsidian", "[[a | b]]\n", None),
        (None, ":\n|a\n|\n", [": |a |"]),
        ("obsidian", "a | b\n- | -\n[[a|b|c]] d\n", ["a", "b", "<x1/> d"]),
        # text that looks like a tag of ours
        (None, "a < x5> b\n", ["a <x1/> b"]),
        # a template of another kind closes none
        ("hugo", "{{ highlight }}\n{{< /highlight >}} a\n", ["<x1/> a"]),
        # blocks of HTML end at the first line of other syntax
        ("jekyll", '<div>a\n{: title="b"}\n', ["a", "b"]),
        ("mkdocs", "<div>\n```aa\n```\n\n??? a\n", []),
        ("mkdocs", '<div>\nbcd\n```js title="a b"\nx\n```\n</div>\n', ["bcd", "a b"]),
        # a bar alone is hidden behind a table, which no other lines are
        (None, "b|c\n-||\n|\n", ["b|c -|| |"]),
        (None, "b|c\n    -|-\n|\n", ["b|c -|- |"]),
        (None, "- b|\n-|\n|\n", ["b| -| |"]),
        (None, "- b|c\n  -|-\n  |\nd\n", ["b", "c", "d"]),
        (None, "b|c\n-|-\nd\n|\ne\n", ["b", "c", "d", "e"]),
        (None, "> b\n|c|d\n-|-\n|\n", ["b |c|d -|- |"]),
        (None, "|\nn\n- | y\n", ["| n", "y"]),
        (None, "|\nb|c\n-|-\n", []),
        ("github", "| a | b |\n---|---\n| c | d |\n", ["a", "b", "c", "d"]),
        # lines in blocks of HTML begin no other block
        (None, "<div>$$a\n$$\n", ["$$a $$"]),
        (None, "<div>```\na\n", ["``` a"]),
        (None, "</div>\n1. <\n    b\n", ["< b"]),
        # neither a note nor a block of HTML ends where a definition seems to begin
        (None, "[^1]: b\n[c]: u\n\n[][c]\n", ["b [c]: u"]),
        (None, "<v>\n[c]: u\n\n[][c]\n", ["[c]: u"]),
        # the label of a link or an image with attributes is no span
        (
            "mkdocs",
            "See [b]{.x}, ![c][b]{.x} [c][d]{.x}.\n\n![b]{.x}\n\n[b]: u\n",
            ["See <g1>b</g1>, <g2>c</g2> <g3>c</g3>.", "b"],
        ),
        ("quarto", "[b]{.x} c\n\n[b]: u\n", ["<g1>b</g1> c"]),
        # a label in front of a colon is one
        (None, "See the [b\nc]:\n\n[b c]: u\n", ["See the <g1>b c</g1>:"]),
        (None, "- [b]: see it\n  [c](u)\n\n[b]: u\n", ["<g1>b</g1>: see it <g2>c</g2>"]),
        # no bracket begins a formula, no colon an emoji
        (None, "[x] a_b\\](\n", ["[x] a_b]("]),
        (None, "明:s:http://eï\n", ["明:s:<x1/>ï"]),
        # the parser of headings' attributes fails on it
        (None, "> a\n>  {b}\n> ===\n", ["a {b}"]),
        ("jekyll", "{{|}}b\n-|-\n|\n", ["<x1/>b -|- |"]),
        # in MDX, too, the content of an element of code is no text
        ("docusaurus", "<code>\n [a b](u)\n</code>\n\n<pre>\n  a\n\n  b\n</pre>\n", []),
        # no line of MDX that moves left ends another one by two blanks, or begins a table
        ("docusaurus", "    > x\n>     y\n", ["x y"]),
        ("docusaurus", "<>\n    p\n  |-\n", ["p |-"]),
        ("docusaurus", "    b||\n    |-\n", ["b|| |-"]),
        ("docusaurus", "    b|c\n    -|-\n    d|e\n", ["b", "c", "d", "e"]),
        ("docusaurus", "# A\n    b\n" * 10, ["A", "b"] * 10),
    ],
)
def test_what_random_pages_found_reads_back(
    site: str | None, document: str, texts: list[str] | None
) -> None:
    options = replace(ENGLISH, site=site)
    codec = registry.codec("mdx" if site == "docusaurus" else "markdown")
    data = document.encode()
    found = codec.extract(data, options)
    sent: list[str | None] = [each.text for each in found.segments]
    assert codec.splice(data, found, sent, options) == data
    if texts is None:  # a mark has no place in it: the source stays
        marks: list[str | None] = [f"[de] {text}" for text in sent]
        assert codec.splice(data, found, marks, options) == data
        return
    assert sent == texts
    marked = put_back(codec, data, found, [f"[de] {text}" for text in texts], options)
    assert (marked.tags, marked.changed) == ([], [])


@given(st.lists(_pieces, max_size=25), st.sampled_from(["markdown", "mdx"]))
def test_every_document_is_itself_again(pieces: list[str], name: str) -> None:
    codec, data = registry.codec(name), "".join(pieces).encode()
    found = codec.extract(data, ENGLISH)
    own: list[str | None] = [each.text for each in found.segments]
    assert codec.splice(data, found, own, ENGLISH) == data


@pytest.mark.parametrize(
    ("name", "document", "texts"),
    [
        ("markdown", "About 50\n% of users.\n", ["About 50 % of users."]),
        ("mdx", "We\nimport it all.\n", ["We import it all."]),
        ("markdown", "> ```\n> code\n\n!!! note\n\n    Body\n", ["Body"]),
        ("markdown", "Ratio a:b:c at 12:30:45 (x{y}) and f(){z} [[1]](u)\n", None),
        ("markdown", "Text\n    {: .x}\n", ["Text"]),
    ],
)
def test_text_that_looks_like_other_syntax_is_sent(
    name: str, document: str, texts: list[str] | None
) -> None:
    codec, data = registry.codec(name), document.encode()
    found = codec.extract(data, ENGLISH)
    sent = [each.text for each in found.segments]
    assert sent == (texts or ["Ratio a:b:c at 12:30:45 (x{y}) and f(){z} <g1>[1]</g1>"])
    assert codec.splice(data, found, sent, ENGLISH) == data


def test_prose_that_templates_leave_alone_is_a_remark() -> None:
    data = b"{% raw %}\nAll of this.\n{% endraw %}\n\n{% raw %}`{{ x }}`{% endraw %}\n"
    [remark] = registry.codec("markdown").extract(data, ENGLISH).remarks
    assert (remark.kind, remark.place, remark.count) == ("shortcode", "line 1", 1)


LIST = b"""\
Use `![](x){fig-alt="Code here"}` ![](a.png){fig-alt="An image"
title="Two"}, `x{title="a b"}`{title="Three"}.

    [x]{title="Code here"}

![](b.png){fig-alt="Alone" fig-note="Other text"}
"""


def test_attributes_behind_images_and_code_are_sent_and_those_in_code_are_not() -> None:
    found = registry.codec("markdown").extract(LIST, replace(ENGLISH, site="quarto"))
    sent = [each.text for each in found.segments if each.kind == "attribute"]
    assert sent == ["An image", "Two", "Three", "Alone"]
    [remark] = found.remarks
    assert (remark.kind, remark.place, remark.count) == ("attribute", "line 6", 1)


@pytest.mark.parametrize(
    ("site", "document", "remarks"),
    [
        ("jekyll", '{% include a.html text="t" note="Some text here" %}\n', [("attribute", 1)]),
        (None, "Text:\na | b\n--- | ---\nc d | e\n\nEnd\n", [("table", 2)]),
        (None, "# Head\na | b\n:-- | --:\nc d | e\n\na | b\n-|-\nc | d\n", []),
        ("hugo", 'Text {{< alert lead="Watch out" class="a b" >}}.\n', [("attribute", 1)]),
        ("docusaurus", '<A note="Read more" />\n\n<A style="a b" />\n', [("attribute", 1)]),
        ("docusaurus", '<A all={["one long item", "b"]} />\n', [("attribute", 1)]),
        ("docusaurus", 'export const a = "Some text here";\n\nText\n', [("expression", 1)]),
        ("docusaurus", 'A {"some long text"} {/* "some long text" */}\n', [("expression", 1)]),
        ("docusaurus", 'import A from "a b";\n\nText {f("a", "b")}\n', []),
        ("sphinx", "```{other}\nA text\n```\n\n```{code-block} c\na b\n```\n", [("directive", 1)]),
        ("github", "[[A text|Page]] `[[A text|Page]]`\n", [("attribute", 1)]),
        ("github", "A text\nb | c\n|---|---|\n| d | e |\n", [("table", 2)]),
        ("sphinx", "```{figure} a\n---\nalt: A text\n---\n```\n", [("attribute", 3)]),
        ("quarto", '```{r}\n#| echo\n#| fig-cap: "A text"\n```\n', [("attribute", 3)]),
        ("sphinx", "```{glossary}\nA term\n  Text\nB\n  Text\n```\n", [("directive", 2)]),
        (None, "---\nnote: Some more text\nauthor: A B C\n---\n\nText\n", [("front_matter", 2)]),
    ],
)  # fmt: skip
def test_text_that_the_site_does_not_choose_is_a_remark(
    site: str | None, document: str, remarks: list[tuple[str, int]]
) -> None:
    codec = registry.codec("mdx" if site == "docusaurus" else "markdown")
    found = codec.extract(document.encode(), replace(ENGLISH, site=site))
    assert [(each.kind, each.place) for each in found.remarks] == [
        (kind, f"line {line}") for kind, line in remarks
    ]


@pytest.mark.parametrize(
    ("site", "document", "texts"),
    [
        # the colon of a definition begins no emoji, nor does that of an address
        (None, "see [a][1]\n\n[1]:https://e.org/x\n[2]:tel:+1\n", ["see <g1>a</g1>"]),
        (None, "演示:https://e.org :tada:\n", ["演示:<x1/> <x2/>"]),
        # metadata in lines
        ("mkdocs", "TITLE: My\n    title\nDate: 2010-12-03\n\nText\n", ["My title", "Text"]),
        ("mkdocs", "Note: a b\n\nText\n", ["Text"]),
        (None, "Title: My title\r\nSlug: my-slug\r\n\r\nText\r\n", ["My title", "Text"]),
        (None, "Title: one line\n\nText\n", ["Title: one line", "Text"]),
        (None, "From: one\nTo: two\n\nText\n", ["From: one To: two", "Text"]),
        ("hugo", "Title: My title\nSlug: a\n\nText\n", ["Title: My title Slug: a", "Text"]),
        (None, ".. title: A title\n.. slug: y\n\nText\n", ["A title", "Text"]),
        (None, "<!--\n.. title: A title\n.. slug: y\n-->\n\nText\n", ["A title", "Text"]),
        # of the first line of mdbook-admonish only the title is text
        ("mdbook", "```admonish warning\nBody\n```\n", ["Body"]),
        ("mdbook", "```admonish bug title='A title' id=\"x\"\nBody\n```\n", ["A title", "Body"]),
        (None, '```admonish note "A title"\nBody\n```\n', ["A title", "Body"]),
        (None, '~~~admonish "A title"\nBody\n~~~\n', ["A title", "Body"]),
        ("obsidian", "See [[Page|label]] now.\n", ["See <g1>label</g1> now."]),
        ("hugo", '{{< qr level="low" >}}\nBEGIN:VCARD\nN:A B\n{{< /qr >}}\n\nc\n', ["c"]),
        # a template that ends inside of fenced code ends nothing for the parser
        ("jekyll", "a\n\n{% raw %}\n```\n{{ b }}\n{% endraw %}\n```\n\nc\n", ["a", "c"]),
        # a template whose end begins a line, emoji in emphasis
        ("hugo", '{{< img\n  src="a"\n  alt="B c"\n>}}\n\n{{ x\n}} b\n', ["B c", "<x1/> b"]),
        ("mkdocs", "a\n\n__:goal-16: Goal__\n", ["a", "<x1/> Goal"]),
        # names of fields
        ("sphinx", ":sphinxcontrib.mermaid: A b\n:param str c: d\n", ["A b", "d"]),
        # lines of other syntax that continue a paragraph, with blanks in front of them
        ("mdbook", "w:32 \n      <<< a\na b<div>c\n", ["w:32<x1/>a b<x2/>c"]),
        ("vitepress", "> a \n>       <<< a \n> `b` c\n", ["a<x1/><x2/> c"]),
        # tags of Vue
        ("vitepress", '<button @click="count++">Click me</button>\n', ["Click me"]),
        (
            "vuepress",
            'A <b #slot :a="b" v-if="x" @b.c="{a: 1}">c</b> a <d @e\n f>\n',
            ["A <g1>c</g1> a <x2/>"],
        ),
        # citations and references of pandoc
        ("quarto", "See @fig-x, @{a b} [-@y] a@b.de\n", ["See <x1/>, @{a b} <x2/> a@b.de"]),
        ("quarto", "@doe99 says, @eq-a. \\@b\n", ["<x1/> says, <x2/>. @b"]),
        # blocks with an id, tasks and sizes of Obsidian
        ("obsidian", "e ^k\nf\n\n- x ^i\n- y\n", ["e ^k f", "x <x1/>", "y"]),
        ("obsidian", "Text ^a-1\n\n- [?] x [a]\n- [x] y\n\n", ["Text <x1/>", "x [a]", "y"]),
        ("obsidian", "![Alt|100x145](a.png) ![a|b](c)\n", ["Alt<x1/>", "a|b"]),
        # slides, Logseq, includes, sizes and rules
        (None, "![bg right:40%](x)\n\nA ![bg w:32 b](z).\n", ["A <g1><x2/> b</g1>."]),
        (None, "Text\n\n::right::\n\n::include{file=a.md}\n", ["Text"]),
        (None, "- Text\n  id:: 6-a\n  SCHEDULED: <2024-01-01 Mon>\n  collapsed:: true\n", ["Text"]),
        (None, "![a](x =200x) ![b](y =x20) c\n", ["<g1>a</g1> <g2>b</g2> c"]),
        ("mdbook", "r[items.fn]\nText of r[0] it.\n", ["Text of r[0] it."]),
        # comments of MyST, and a cell that is none
        ("sphinx", "- a\n  % comment\n", ["a"]),
        ("sphinx", "| a |\n|---|\n| % of it |\n", ["a", "% of it"]),
        # headings and lists behind the end of an element, and Markdown in elements
        ("jekyll", "<div>\na\n</div>\n## B c\n- d e\n- f\n", ["a", "B c", "d e", "f"]),
        (None, "<p>a b</p>\n1. c\n2. d\n</div>\n", ["a b", "c", "d"]),
        ("quarto", "<div>\na\n</div>\n## B *c*\n", ["a", "B <g1>c</g1>"]),
        # words alone in braces are attributes of a heading for few
        ("github", "## GET /a/{id}\n\n## b {c}\n\nd {e}\n---\n", ["GET /a/{id}", "b {c}", "d {e}"]),
        ("mkdocs", "## GET /a/{id}\n\n## b {c}\n", ["GET /a/{id}", "b"]),
        ("mdbook", "## b{c}\n\n## d {}\n", ["b", "d {}"]),
        # which CommonMark reads as a part of the block: remark, Hugo and markdown-it show the `##`
        ("github", "<div>\na\n</div>\n## B *c*\n", ["a", "## B *c*"]),
        ("hugo", "<p>a b</p>\n- c d\n", ["a b", "- c d"]),
        ("mkdocs", "<ul>\n<li>a</li>\n</ul>\n# B\n    <p>c d</p>\n", ["a", "# B", "c d"]),
        (
            "jekyll",
            (
                '<aside markdown="1">\n  <img src="a.png" alt="An image">\n  Text *so*.\n'
                '  <p markdown="1" class="b">\n— item\n  </p>\nMore **text**.\n</aside>\n'
            ),
            ["An image", "Text <g1>so</g1>.", "— item", "More <g1>text</g1>."],
        ),
        (
            "mkdocs",
            "<div markdown>\n<div>\na\n</div>\n\n*b* c\n</div>\n# D\n",
            ["a", "<g1>b</g1> c", "D"],
        ),
        (
            "jekyll",
            '<div markdown="1">\n\n<p>\n <input id="a">\n <b>A b</b>\n</p>\n\n*c*\n</div>\n',
            ["<x1/> <g2>A b</g2>", "c"],
        ),
        ("quarto", "Install <code>npm @a/b</code> @a/b.\n", ["Install <x1/> <x2/>."]),
        ("jekyll", '<div markdown="1">\n<p markdown="1">— *a* b</p>\n</div>\n', ["— <g1>a</g1> b"]),
        # terms of a glossary stay: roles name them
        (
            "sphinx",
            "```{glossary}\na b\n  C d\n\ne\n    F\n    g\n\n    *H*\n```\n",
            ["C d", "F g", "H"],
        ),
        (
            "sphinx",
            ":::{glossary}\n:sorted:\na b\n: C d\n\ne f\r\n\tG\r\n:::\nH\n",
            ["C d", "G", "H"],
        ),
        (
            "sphinx",
            "```{glossary}\na]: b\n\t*C* d\n\n\t~~~\n\tx\n\t~~~\n```\n\nE\n",
            ["<g1>C</g1> d", "E"],
        ),
    ],
)
def test_syntax_of_a_site_stays_and_its_text_is_sent(
    site: str | None, document: str, texts: list[str]
) -> None:
    options = replace(ENGLISH, site=site)
    codec, data = registry.codec("markdown"), document.encode()
    found = codec.extract(data, options)
    sent = [each.text for each in found.segments]
    assert sent == texts
    assert codec.splice(data, found, sent, options) == data
    marked = put_back(codec, data, found, [f"Zz {text}" for text in sent], options)
    assert (marked.tags, marked.changed) == ([], [])
    assert re.sub(r"Zz\s+", "", marked.data.decode()).split() == document.split()


def test_code_spans_side_by_side_are_refused_by_their_own_text() -> None:
    codec, data = registry.codec("markdown"), b"Use `a` or `b`.\n\n" * 30 + b"Text\n"
    found = codec.extract(data, ENGLISH)
    spliced = put_back(codec, data, found, [*["Use <x1/><x2/>."] * 30, "Zz"], ENGLISH)
    assert spliced.changed == list(range(30))
    assert spliced.data == data.replace(b"Text", b"Zz")


@pytest.mark.parametrize(
    "part",
    [
        "export const a = `a`\n\n",
        "import a from 'b' text\n\n",
        "export const a = /*\n\n",
        "{a <b\n",
    ],
)
def test_modules_and_expressions_take_linear_time(part: str) -> None:
    codec = registry.codec("mdx")
    times = list[float]()
    for count in (500, 4000):
        data = (part * count).encode()
        begun = time.process_time()
        codec.extract(data, ENGLISH)
        times.append(time.process_time() - begun)
    assert times[1] < 30 * max(times[0], 0.01)


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        (r"\< i", r"Zz \< i \<b"),
        ("a < b", r"Zz a < b \<b"),
        (r"a < b and c \< d", r"Zz a \< b and c \< d \<b"),
        ("3<5 and <!- x", r"Zz 3\<5 and \<!- x \<b"),
    ],
)
def test_an_angle_of_mdx_stays_as_it_is_spelled_where_it_is_text(page: str, expected: str) -> None:
    mdx, data = registry.codec("mdx"), page.encode()
    found = mdx.extract(data, ENGLISH)
    own = [each.text for each in found.segments]

    assert mdx.splice(data, found, own, ENGLISH) == data
    assert mdx.splice(data, found, [f"Zz {own[0]} <b"], ENGLISH) == expected.encode()


def test_links_of_one_text_and_label_end_each_as_in_the_source() -> None:
    markdown, data = (
        registry.codec("markdown"),
        b"See [ref][ref], [ref] and [ref][].\n\n[ref]: /u\n",
    )
    found = markdown.extract(data, ENGLISH)
    own = [each.text for each in found.segments]

    assert markdown.splice(data, found, own, ENGLISH) == data
    assert markdown.splice(data, found, [f"Zz {own[0]}"], ENGLISH) == data.replace(
        b"See", b"Zz See"
    )
