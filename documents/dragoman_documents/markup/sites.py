"""The site generators whose Markdown Dragoman knows: what each of them adds to CommonMark.

One row per site. A site is named by `--site` or recognized by its own files (`site_of`).
"""

from __future__ import annotations

from functools import cache
from string import punctuation
from typing import Final, Literal, NamedTuple

Dialect = Literal[
    "gfm", "mdx", "python-markdown", "goldmark", "kramdown", "markdown-it", "pulldown-cmark",
    "myst", "pandoc", "obsidian",
]  # fmt: skip
"""The family of Markdown that a site writes in `.md` files."""

Ids = Literal["attributes", "comment", "html", "label", "none"]
"""How a page gives an id to a heading: `{#id}`, a comment of MDX, `<a id="id"></a>`, MyST's
`(id)=`, or not at all."""


class Anchors(NamedTuple):
    """How the pages of a site get the ids of their sources."""

    slugger: str
    ids: Ids
    comment: str = "{/* #%s */}"
    """How an id is written if `ids` is `comment`."""
    guesses: bool = False
    """Whether a page that is full of ids shows that its renderer knows them."""


class Site(NamedTuple):
    """What the Markdown of a site has beyond CommonMark and GitHub's extensions."""

    name: str
    dialect: Dialect
    mdx: bool = False
    """Whether `.md` files are MDX."""
    metadata: tuple[str, ...] = ("title", "description", "summary")
    """Patterns of front-matter keys with text that readers see, a string or a list of strings."""
    code: frozenset[str] = frozenset()
    """Names of paired tags, shortcodes and directives whose body is code or data."""
    blocks: frozenset[str] = frozenset()
    """Names of paired tags, shortcodes, containers and directives whose body is Markdown."""
    attributes: frozenset[str] = frozenset({"title", "alt", "caption", "label"})
    """Names of attributes and directive options that hold text that readers see."""
    escapes: str = punctuation
    """The ASCII punctuation that a backslash escapes."""
    slugger: str = "github-slugger"
    """What makes the ids of headings: a name in `sluggers.SLUGGERS`."""
    ids: Ids = "html"
    """How a translation keeps the ids of its source."""
    comment: str = "{/* #%s */}"
    """How an id is written in a comment."""


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_ADMONITIONS: Final = _names("note tip info warning danger caution important details")
_DIAGRAMS: Final = _names("mermaid math")
_LIQUID_CODE: Final = _names("highlight raw verbatim gist comment mermaid math katex plantuml")
_PYTHON_MARKDOWN_BLOCKS: Final = _names(
    # admonitions, then those of Material and of pymdownx.blocks
    "note tip info warning danger caution important hint attention error admonition abstract "
    "summary tldr todo success check done question help faq failure fail missing bug example quote "
    "cite seealso tab details caption figure-caption table-caption html pied-piper"
)
_SPHINX_CODE: Final = _names(
    "code code-block code-cell sourcecode highlight literalinclude parsed-literal prompt doctest "
    "testcode testsetup testoutput testcleanup math raw mermaid graphviz graph digraph plantuml "
    "tikz include eval-rst toctree bibliography index csv-table image video iframe youtube "
    "productionlist program-output command-output jupyter-execute autosummary automodule autoclass "
    "autofunction automethod autodata autoattribute autoexception autodoc2-object "
    "autodoc2-docstring autodoc2-summary argparse click docstring myst-directives myst-config "
    "inheritance-diagram contents default-domain currentmodule module role default-role"
)
_SPHINX_BLOCKS: Final = _names(
    # docutils and Sphinx, then sphinx-design, then extensions
    "note tip warning danger caution important hint attention error seealso admonition topic "
    "sidebar epigraph highlights pull-quote compound container div rubric centered figure "
    "list-table table tabularcolumns versionadded versionchanged versionremoved deprecated only "
    "glossary todo hlist dropdown card card-carousel grid grid-item grid-item-card tab-set "
    "tab-item tab-set-code tabs tab group-tab margin aside exercise solution proof myst-example"
)
_QUARTO_BLOCKS: Final = _names(
    # classes of divs: `::: {.callout-note}`, `::: columns`
    "callout callout-note callout-tip callout-warning callout-important callout-caution "
    "panel-tabset columns column column-margin column-body column-page column-screen aside notes "
    "incremental nonincremental fragment content-visible content-hidden theorem lemma corollary "
    "proposition conjecture definition example exercise solution remark proof line-block "
    "layout grid card hero footer absolute r-stack"
)
_HUGO_BLOCKS: Final = _names(
    # Hugo's own and its docs', then those of Docsy, Book, Relearn, Hextra and Geekdoc
    "details note tip warning caution important info danger new-in deprecated-in alert pageinfo "
    "hint callout notice admonition attention expand tabs tab tabpane columns column steps step "
    "cards card cardpane blocks/section blocks/feature blocks/lead blocks/cover section "
    "quote button collapse accordion accordion-item box success error question"
)
_VUE_BLOCKS: Final = _ADMONITIONS | _names("raw v-pre code-group code-group-item tabs code-tabs")
_CALLOUTS: Final = _ADMONITIONS | _names(
    "abstract summary tldr todo hint success check done question help faq attention failure fail "
    "missing error bug example quote cite"
)
_JSX_ATTRIBUTES: Final = _names(
    "title alt caption label summary description aria-label placeholder"
)
_HOME: Final = (
    "hero.name", "hero.text", "hero.title", "hero.tagline", "hero.image.alt",
    "hero.actions.*.text", "features.*.title", "features.*.details", "features.*.linkText",
)  # fmt: skip

_SITES: Final = (
    Site(
        "docusaurus",
        "mdx",
        mdx=True,
        metadata=(
            "title", "title_meta", "sidebar_label", "pagination_label", "description",
            "keywords", "author_title", "authorTitle", "authors.title",
            "authors.*.title",
        ),
        code=_DIAGRAMS,
        blocks=_ADMONITIONS | _names("secondary success"),
        attributes=_JSX_ATTRIBUTES,
        slugger="docusaurus",
        ids="attributes",
    ),
    Site(
        "mkdocs",
        "python-markdown",
        metadata=(
            "title", "subtitle", "description", "summary",
            "social.cards_layout_options.title", "social.cards_layout_options.description",
        ),
        code=_names("raw verbatim highlight"),
        blocks=_PYTHON_MARKDOWN_BLOCKS,
        attributes=_names(
            "title alt caption label summary data-title data-description data-caption "
            "data-toc-label aria-label"
        ),
        escapes="\\`*_{}[]()>#+-.!",
        slugger="python-markdown",
    ),
    Site(
        "vitepress",
        "markdown-it",
        metadata=(
            "title", "titleTemplate", "description", *_HOME, "prev", "prev.text", "next",
            "next.text",
        ),
        code=_DIAGRAMS,
        blocks=_VUE_BLOCKS,
        attributes=_JSX_ATTRIBUTES | {"text"},
        slugger="mdit-vue",
        ids="attributes",
    ),
    Site(
        "vuepress",
        "markdown-it",
        metadata=(
            "title", "shortTitle", "description", "heroText", "heroAlt", "tagline", "actionText",
            "actions.*.text", "features.*.title", "features.*.details", "highlights.*.header",
            "highlights.*.description", "highlights.*.features.*.title",
            "highlights.*.features.*.details", "footer", "copyright", "excerpt",
            "prev.text", "next.text",
        ),
        code=_DIAGRAMS | _names("flowchart echarts chart playground vue-playground"),
        blocks=_VUE_BLOCKS | _names("center right left align"),
        attributes=_JSX_ATTRIBUTES | {"text"},
        slugger="mdit-vue",
        ids="attributes",
    ),
    Site(
        "hugo",
        "goldmark",
        metadata=(
            "title", "linkTitle", "linktitle", "subtitle", "description", "summary", "lead",
            "menu.**.name", "menus.**.name", "resources.*.title", "cover.alt", "cover.caption",
        ),
        code=_LIQUID_CODE | _names("code code-toggle rawhtml chem eqn chart markmap asciinema qr"),
        blocks=_HUGO_BLOCKS,
        attributes=_names("title alt caption label summary attr header footer description"),
        slugger="goldmark",
        ids="attributes",
    ),
    Site(
        "jekyll",
        "kramdown",
        metadata=(
            "title", "subtitle", "nav_title", "parent", "grand_parent", "description", "excerpt",
            "summary", "tagline", "toc_label", "image.alt", "header.caption",
            "header.image_description", "header.actions.*.label", "feature_row.*.title",
            "feature_row.*.excerpt", "feature_row.*.alt", "feature_row.*.btn_label",
        ),
        code=_LIQUID_CODE,
        blocks=_ADMONITIONS | _names("capture tabs tab"),
        attributes=_names("title alt caption label summary content text"),
        escapes="\\.*_+`<>()[]{}#!:|\"'$=-~",
        slugger="kramdown-gfm",
        ids="attributes",
    ),
    Site(
        "mdbook",
        "pulldown-cmark",
        code=_DIAGRAMS,
        blocks=_CALLOUTS | _names("admonish"),
        slugger="mdbook",
        ids="attributes",
    ),
    Site(
        "mintlify",
        "mdx",
        metadata=(
            "title", "sidebarTitle", "description", "tag", "keywords", "og:title",
            "og:description", "twitter:title", "twitter:description",
        ),
        code=_DIAGRAMS,
        blocks=_ADMONITIONS,
        attributes=_JSX_ATTRIBUTES | {"cta", "tip"},
        ids="attributes",
    ),
    Site(
        "quarto",
        "pandoc",
        metadata=(
            "title", "subtitle", "abstract", "abstract-title", "description", "summary",
            "toc-title", "image-alt", "code-summary", "footer", "keywords",
            "about.links.*.text", "format.*.toc-title", "format.*.footer", "crossref.fig-title",
            "crossref.tbl-title", "crossref.lst-title",
        ),
        code=_names("raw"),
        blocks=_QUARTO_BLOCKS,
        attributes=_names(
            "title alt caption fig-cap fig-alt fig-subcap tbl-cap tbl-subcap lst-cap "
            "aria-label description"
        ),
        slugger="pandoc",
        ids="attributes",
    ),
    Site(
        "obsidian",
        "obsidian",
        code=_DIAGRAMS | _names("query dataview dataviewjs tasks"),
        blocks=_CALLOUTS,
        ids="none",
    ),
    Site(
        "astro",
        "gfm",
        metadata=(
            "title", "description", *_HOME, "banner.content", "sidebar.label", "sidebar.badge",
            "sidebar.badge.text", "prev", "prev.label", "next", "next.label", "image.alt",
        ),
        code=_DIAGRAMS,
        blocks=_ADMONITIONS,
        attributes=_JSX_ATTRIBUTES | {"text"},
        slugger="astro",
    ),
    Site(
        "sphinx",
        "myst",
        metadata=(
            "title", "short_title", "subtitle", "abstract", "dedication", "description",
            "html_meta.description", "html_meta.keywords", "html_meta.description lang=en",
            "myst.html_meta.description", "myst.html_meta.keywords",
            "myst.html_meta.description lang=en", "myst.html_meta.property=og:title",
            "myst.html_meta.property=og:description",
        ),
        code=_SPHINX_CODE,
        blocks=_SPHINX_BLOCKS,
        # `label` is an id there: `:label: equation-1`
        attributes=_names("title alt caption header footer"),
        slugger="myst-parser",
        ids="label",
    ),
    Site("antora", "gfm", code=_DIAGRAMS, blocks=_ADMONITIONS, ids="none"),
    Site(
        "react.dev",
        "mdx",
        mdx=True,
        metadata=("title", "titleForTitleTag", "description"),
        attributes=_JSX_ATTRIBUTES,
        ids="comment",
        comment="{/*%s*/}",
    ),
    Site(
        "github",
        "gfm",
        metadata=("title", "description", "summary", "about"),
        code=_DIAGRAMS | _names("geojson topojson stl"),
        blocks=_ADMONITIONS,
    ),
)  # fmt: skip
_BY_NAME: Final = {each.name: each for each in _SITES}
NAMES: Final = tuple(_BY_NAME)
"""The choices of `--site`."""


def site(name: str | None) -> Site:
    """Return a site by its name. Raises KeyError.

    None: a site that nothing names, which may use the code and blocks of any of them.
    """
    return _any() if name is None else _BY_NAME[name]


def _site_escapes() -> str:
    """Return what a backslash escapes on every site."""
    return "".join(each for each in punctuation if all(each in row.escapes for row in _SITES))


@cache
def _any() -> Site:
    code = frozenset[str]().union(*(each.code for each in _SITES))
    blocks = frozenset[str]().union(*(each.blocks for each in _SITES))
    return Site("", "gfm", code=code, blocks=blocks - code, escapes=_site_escapes())
