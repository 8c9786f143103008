"""Ids of headings, written into translations so that links to them still work."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_documents.codec import Extraction, Options
from dragoman_documents.markup.anchors.insertions import with_ids
from dragoman_documents.markup.anchors.verifying import Unverified
from dragoman_documents.markup.markdown.codec import CODECS
from dragoman_documents.markup.notebooks import CODECS as NOTEBOOKS
from dragoman_documents.markup.sites import NAMES, Anchors, site
from dragoman_documents.putting_back import put_back

HTML = Anchors("github-slugger", "html", guesses=True)


def anchors_of(name: str) -> Anchors:
    row = site(name)
    return Anchors(row.slugger, "attributes" if name == "mkdocs" else row.ids, row.comment)


def translated(
    page: str,
    name: str | None = None,
    *,
    codec: str = "markdown",
    mark: str = "Zz ",
    bilingual: bool = False,
    anchors: Anchors | None = None,
) -> str:
    """Return a page whose texts are marked, with the ids of its source."""
    kind, options = {**CODECS, **NOTEBOOKS}[codec], Options("de", site=name, bilingual=bilingual)
    found = kind.extract(page.encode(), options)
    spliced = put_back(
        kind, page.encode(), found, [f"{mark}{each.text}" for each in found.segments], options
    )
    chosen = anchors or (anchors_of(name) if name else HTML)
    return with_ids(kind, spliced, found, options, chosen).decode()


@pytest.mark.parametrize(
    ("name", "page", "expected"),
    [
        ("vitepress", "## Run it", "## Zz Run it {#run-it}"),
        ("vitepress", "## Run it ##", "## Zz Run it {#run-it} ##"),
        ("mkdocs", "## Run it ##", "## Zz Run it ## {#run-it}"),
        ("vitepress", "## Run it\\", "## Zz Run it\\ {#run-it}"),
        ("hugo", "Run it\n---", "Zz Run it {#run-it}\n---"),
        ("hugo", "## Run it  \r\n\r\nText.", "## Zz Run it {#run-it}  \r\n\r\nZz Text."),
        ("mkdocs", '## V { data-x="V" }', '## Zz V { data-x="V" #v }'),
        ("mkdocs", "## 2021 in text", '## Zz 2021 in text {id="2021-in-text"}'),
        ("vitepress", "## Run {.x}", "## Zz Run {.x #run}"),
        ("hugo", "## Run it {id=mine}\n\n## B", "## Zz Run it {id=mine}\n\n## Zz B {#b}"),
        ("jekyll", "## Run it\n{: #mine}\n\n## B", "## Zz Run it\n{: #mine}\n\n## Zz B {#b}"),
        ("jekyll", "## get(key) {block}", "## Zz get(key) {block} {#getkey-block}"),
        ("hugo", "## GET /users/{id}", "## Zz GET /users/{id} {#get-usersid}"),
        ("vitepress", "## Run {x}", "## Zz Run {x #run}"),
        ("jekyll", "## 快速开始", '## <a id="快速开始"></a>Zz 快速开始'),
        ("mkdocs", "## 快速开始", "## Zz 快速开始 {#_1}"),
        ("react.dev", "## A\n\n## B {/*b*/}", "## Zz A {/*a*/}\n\n## Zz B {/*b*/}"),
        ("astro", "## Run it", '## <a id="run-it"></a>Zz Run it'),
        ("sphinx", "Text.\n\n## Run it", "Zz Text.\n\n(run-it)=\n## Zz Run it"),
        ("sphinx", "(own)=\n## Run it\n\n## B", "(own)=\n## Zz Run it\n\n(b)=\n## Zz B"),
        ("sphinx", "- a\n\n  ## Run it\n\n## B", "- Zz a\n\n  ## Zz Run it\n\n(b)=\n## Zz B"),
        ("quarto", "> ## In a quote", "> ## Zz In a quote {#in-a-quote}"),
        ("mdbook", "- ## In a list", "- ## Zz In a list {#in-a-list}"),
        ("obsidian", "## Run it", "## Zz Run it"),
        (
            None,
            "## Run it\n\n## Run it",
            '## <a id="run-it"></a>Zz Run it\n\n## <a id="run-it-1"></a>Zz Run it',
        ),
        (None, '<a name="run-it"></a>\n\n## Run it', '<a name="run-it"></a>\n\n## Zz Run it'),
        (None, '<p id="run-it">x</p>\n\n## Run it', '<p id="run-it">Zz x</p>\n\n## Zz Run it'),
    ],
)
def test_a_heading_keeps_the_id_of_its_source(name: str | None, page: str, expected: str) -> None:
    codec = "mdx" if name == "react.dev" else "markdown"

    assert translated(page, name, codec=codec) == expected


def test_emoji_that_are_pictures_are_in_no_id() -> None:
    anchors = Anchors("python-markdown+emoji", "attributes")

    made = translated("## Add a :b-c: to it", "mkdocs", anchors=anchors)

    assert made == "## Zz Add a :b-c: to it {#add-a-to-it}"


def test_terms_that_have_ids_count_before_headings() -> None:
    page = "`scale`\n\n: A number.\n: Or two.\n\n## Scale\n\nOne\nTwo\n: x\n\n## Two\n"
    anchors = anchors_of("hugo")._replace(slugger="goldmark+terms")

    made = translated(page, "hugo", anchors=anchors)

    assert re.findall(r"#+ .*", made) == ["## Zz Scale {#scale-1}", "## Zz Two {#two-1}"]


@pytest.mark.parametrize(
    ("page", "answers", "expected"),
    [
        ("See [Run it].", ["Siehe [Start]."], "Siehe [Start].\n\n[Start]: #run-it\n"),
        ("[Run it] here\n", ["[Los] hier"], "[Los] hier\n\n[Los]: #run-it\n"),
        ("See [Run it].", [None], "See [Run it].\n\n[Run it]: #run-it\n"),
        (
            "See [this][run  it].",
            ["Siehe <g1>das</g1>."],
            "Siehe [das][run  it].\n\n[run it]: #run-it\n",
        ),
        ("See [Run it].", ["Siehe [Ausführen]."], "Siehe [Ausführen]."),
        ("See `[Run it]`.", ["Siehe <x1/>."], "Siehe `[Run it]`."),
        ("Run [it].", ["Los [es]."], "Los [es]."),
        ("See [Run it]\n\n[Run it]: /x", ["Zu <g1>Los</g1>"], "Zu [Los][Run it]\n\n[Run it]: /x"),
    ],
)
def test_references_by_the_text_of_a_heading_are_defined(
    page: str, answers: list[str | None], expected: str
) -> None:
    kind, options = CODECS["markdown"], Options("de", site="quarto")
    data = f"# Run it\n\n{page}".encode()
    found = kind.extract(data, options)
    spliced = put_back(kind, data, found, ["Ausführen", *answers], options)

    made = with_ids(kind, spliced, found, options, anchors_of("quarto")).decode()

    assert made == f"# Ausführen {{#run-it}}\n\n{expected}"


def test_docusaurus_keeps_an_escaped_id() -> None:
    page = "## One\n\n## Two \\{#two-id}\n"

    made = translated(page, "docusaurus", codec="mdx")

    assert made == "## Zz One {#one}\n\n## Zz Two \\{#two-id}\n"


def test_a_page_is_pinned_wholly() -> None:
    page = "## API\n\n## Interface\n"
    kind, options = CODECS["markdown"], Options("de", site="vitepress")
    found = kind.extract(page.encode(), options)
    spliced = put_back(kind, page.encode(), found, ["API", "API"], options)

    made = with_ids(kind, spliced, found, options, anchors_of("vitepress"))

    assert made == b"## API {#api}\n\n## API {#interface}\n"


@pytest.mark.parametrize("name", [None, *NAMES])
def test_a_page_whose_ids_stay_is_left_alone(name: str | None) -> None:
    page = "# `code`\n\nText.\n\n## `run()`\n"

    assert translated(page, name) == page.replace("Text", "Zz Text")


def test_only_changed_headings_get_an_element() -> None:
    assert translated("## `run`\n\n## Run it\n") == (
        '## `run`\n\n## <a id="run-it"></a>Zz Run it\n'
    )


def test_a_page_full_of_ids_shows_the_syntax_of_its_renderer() -> None:
    page = "## A {#a1}\n\n## B {#b1}\n\n## C {#c1}\n\n## D\n"

    assert translated(page).endswith("## Zz D {#d}\n")
    assert translated(page.replace("{#", "{/*").replace("}", "*/}"), codec="mdx").endswith(
        "## Zz D {/*d*/}\n"
    )


def test_a_bilingual_page_needs_no_ids() -> None:
    assert "{#" not in translated("## Run it\n", "vitepress", bilingual=True)


def test_a_template_in_a_heading_has_no_known_id() -> None:
    made = translated("## About {{ site.name }}\n\n## B\n", "jekyll")

    assert made == "## Zz About {{ site.name }}\n\n## Zz B {#b}\n"


def test_cells_of_notebooks_get_elements() -> None:
    cells = [
        {
            "cell_type": "markdown",
            "source": ["# Run it\n", "\n", '[a](#Run-it) "b"\n', "## \u00dc"],
        },
        {"cell_type": "markdown", "source": '## \U0001f680 a "b"'},
    ]
    page = json.dumps({"cells": cells, "nbformat": 4})

    made = json.loads(translated(page, codec="ipynb", anchors=Anchors("nbconvert", "html")))

    sources = [each["source"] for each in made["cells"]]
    assert sources[0][0] == '# <a id="Run-it"></a>Zz Run it\n'
    assert sources[0][3] == '## <a id="\u00dc"></a>Zz \u00dc'
    assert sources[1] == '## <a id="\U0001f680-a-&quot;b&quot;"></a>Zz \U0001f680 a "b"'


def test_a_heading_that_is_lost_gets_no_ids() -> None:
    kind, options = CODECS["markdown"], Options("de")
    source, output = b"## A\n\n## B\n", b"## Zz A\n"
    found = kind.extract(source, options)
    spliced = put_back(kind, output, kind.extract(output, options), [None], options)

    with pytest.raises(Unverified):
        with_ids(kind, spliced, found, options, HTML)


HEADINGS = st.text("aZ \u00fc\u5feb`*_[]()<>{}#&;:.!-\\\"'/=|$~^", max_size=12)
BETWEEN = st.sampled_from(
    [
        "text",
        "{{ x",
        "{% raw %}",
        "{ x",
        "$$",
        "%%",
        "<!--",
        "`a",
        "[a]: b",
        "<p",
        "a\n===",
        ">",
        "}",
    ]
)


@given(st.lists(st.tuples(HEADINGS, BETWEEN), max_size=5), st.sampled_from([None, *NAMES]))
def test_ids_are_written_or_refused_but_never_change_a_page(
    parts: list[tuple[str, str]], name: str | None
) -> None:
    page = "".join(f"## {text}\n\n{between}\n\n" for text, between in parts)
    codec = CODECS["mdx" if name and site(name).mdx else "markdown"]
    options = Options("de", site=name)
    found = codec.extract(page.encode(), options)
    spliced = put_back(
        codec, page.encode(), found, [f"Zz {each.text}" for each in found.segments], options
    )
    try:
        made = with_ids(codec, spliced, found, options, anchors_of(name) if name else HTML)
    except Unverified:
        return
    again = codec.extract(made, options)
    assert words_of(again) == words_of(spliced.again)


def words_of(found: Extraction) -> list[list[str]]:
    """Return the words of each segment without its tags."""
    return [re.sub("</?[gx][0-9]+/?>", "", each.text).split() for each in found.segments]
