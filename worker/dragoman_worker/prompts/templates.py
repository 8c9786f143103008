"""Prompt templates from users: Jinja without anything that could run away or reach into Python.

A template sees each text of a user as one private-use character, which is replaced afterwards. So
no text passes through the template engine, its place in the prompt is known exactly, and the time
to render does not depend on it. Calls, assignments, macros, nested loops and arithmetic are
refused, so the output has at most the template's own length for each term of the job.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from jinja2 import StrictUndefined, TemplateError, TemplateSyntaxError, meta, nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment

from dragoman_schemas.nearest import did_you_mean

MOST_CHARS: Final = 32_768
_FIRST_STAND_IN: Final = 0x100000
_STAND_IN: Final = re.compile("([\U00100000-\U0010fffd])")
_FILTERS: Final = frozenset({"join", "lower", "trim", "upper"})
_LOOP: Final = frozenset({"first", "index", "index0", "last", "length"})
_ALLOWED: Final = (
    *(nodes.Template, nodes.Output, nodes.TemplateData, nodes.Name, nodes.Const, nodes.Concat),
    *(nodes.If, nodes.CondExpr, nodes.And, nodes.Or, nodes.Not, nodes.Compare, nodes.Operand),
    *(nodes.For, nodes.Tuple, nodes.Filter, nodes.Getattr),
)
_ENVIRONMENT: Final = ImmutableSandboxedEnvironment(
    undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
)


class TemplateFault(ValueError):
    """What is wrong with a template, and in which line of it."""


@dataclass(frozen=True, slots=True)
class Rendered:
    """A rendered template, and where in it the users' texts are."""

    text: str
    user_spans: tuple[tuple[int, int], ...]


class PromptTemplate:
    """A template that was checked. `variables` are the names that it uses."""

    def __init__(self, source: str, known: Iterable[str]) -> None:
        """Check and compile. Raises TemplateFault."""
        if len(source) > MOST_CHARS:
            raise TemplateFault(f"has {len(source):,} characters; give at most {MOST_CHARS:,}")
        if _STAND_IN.search(source):
            raise TemplateFault("has a private-use character above U+100000; remove it")
        try:
            tree = _ENVIRONMENT.parse(source)
            _check(tree)
            self.variables = frozenset(meta.find_undeclared_variables(tree))
            self._template = _ENVIRONMENT.from_string(tree)
        except TemplateSyntaxError as error:
            raise TemplateFault(f"line {error.lineno}: {error.message}") from None
        except TemplateError as error:
            raise TemplateFault(str(error)) from None
        except (RecursionError, SyntaxError, MemoryError):
            raise TemplateFault("is nested too deeply; make it flatter") from None
        if unknown := sorted(self.variables - set(known)):
            names = ", ".join(sorted(known))
            hint = did_you_mean(unknown[0], known)
            raise TemplateFault(f"there is no variable {unknown[0]}{hint}; use {names}")

    def render(self, plain: Mapping[str, object], users: Mapping[str, object]) -> Rendered:
        """Return the text, with the texts of `users`: strings, or lists of strings or of pairs.

        `plain` has what the settings define, such as names of languages. Raises TemplateFault.
        """
        texts: list[str] = []
        hidden = {name: _hidden(value, texts) for name, value in users.items()}
        try:
            rendered = self._template.render({**plain, **hidden})
        except (TemplateError, TypeError, ValueError) as error:
            raise TemplateFault(str(error)) from None
        return _shown(rendered, texts)


def _hidden(value: object, texts: list[str]) -> object:
    """Return the value with a stand-in for each text, which is appended to `texts`."""
    if isinstance(value, str):
        if not value:
            return ""
        texts.append(value)
        return chr(_FIRST_STAND_IN + len(texts) - 1)
    if isinstance(value, Sequence):
        return [_hidden(part, texts) for part in value]
    return value


def _shown(rendered: str, texts: Sequence[str]) -> Rendered:
    parts: list[str] = []
    spans: list[tuple[int, int]] = []
    length = 0
    for part in _STAND_IN.split(rendered):
        is_user = bool(_STAND_IN.fullmatch(part))
        text = texts[ord(part) - _FIRST_STAND_IN] if is_user else part
        if is_user:
            spans.append((length, length + len(text)))
        parts.append(text)
        length += len(text)
    return Rendered("".join(parts), tuple(spans))


def _check(tree: nodes.Template) -> None:
    for node, depth in _walk(tree, 0):
        fault = _fault(node, depth)
        if fault:
            raise TemplateFault(f"line {node.lineno}: {fault}")


def _walk(node: nodes.Node, depth: int) -> Iterator[tuple[nodes.Node, int]]:
    yield node, depth
    for child in node.iter_child_nodes():
        yield from _walk(child, depth + isinstance(node, nodes.For))


def _fault(node: nodes.Node, loops: int) -> str | None:
    if not isinstance(node, _ALLOWED):
        kind = type(node).__name__.lower()
        return f"{kind} is not allowed; use variables, if, for, join, lower, trim and upper"
    if isinstance(node, nodes.Filter) and node.name not in _FILTERS:
        return f"the filter {node.name} is not allowed; use {', '.join(sorted(_FILTERS))}"
    if isinstance(node, nodes.Getattr):
        of_loop = isinstance(node.node, nodes.Name) and node.node.name == "loop"
        return None if of_loop and node.attr in _LOOP else "only loop has attributes"
    if isinstance(node, nodes.For):
        return _loop_fault(node, loops)
    return None


def _loop_fault(node: nodes.For, loops: int) -> str | None:
    if loops:
        return "a loop within a loop is not allowed"
    if node.recursive or not isinstance(node.iter, nodes.Name):
        return "a loop goes over one variable, such as terms"
    return None
