"""The choices of an ICU message in a fixed order: selects outside, the plural inside."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from dragoman_documents.codec import Options
from dragoman_documents.plurals.rules import CATEGORIES, Form, category, message_forms
from dragoman_text.icu import (
    DEEPEST,
    IcuArgument,
    IcuChoice,
    IcuCount,
    Node,
    NoMessage,
    written,
)

_MANY: Final = frozenset({"one", "other"})
_MOST_LEAVES: Final = 64
_MOST_NODES: Final = 20_000
"""Bounds of all sentences of a message together: choices multiply."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """A sentence: its nodes, without choices, and the selectors that lead to it."""

    nodes: tuple[Node, ...]
    selectors: tuple[str, ...]
    selects: tuple[str, ...]
    """Those of selects, and of plurals with another plural in their arms."""
    form: Form
    """Whose numbers may stand for the count; of a plural's arm `=3`, that number."""
    category: str | None = None
    """The plural category; None outside of plurals and for arms like `=3`."""
    counted: bool = False
    """Whether it is within a plural."""


@dataclass(frozen=True, slots=True)
class Branch:
    """A choice of the message as it is written, with an arm per selector."""

    choice: IcuChoice
    arms: tuple[tuple[str, Branch | Leaf], ...]
    before: str = ""
    """What is spelled before and behind it, if it is the only choice there; also in each arm."""
    behind: str = ""
    optional: frozenset[str] = frozenset()
    """Selectors that the source could have and lacks: of a plural, as `other` says the same."""


def tree(nodes: Sequence[Node], options: Options) -> Branch | Leaf:
    """Return the sentences of a message for the target language. Raises NoMessage."""
    return _Building(options).built(tuple(nodes), (), ())


class _Building:
    """Builds a tree, and counts what it holds."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._leaves = 0
        self._nodes = 0

    def built(
        self, nodes: tuple[Node, ...], selectors: tuple[str, ...], selects: tuple[str, ...]
    ) -> Branch | Leaf:
        self._count(nodes)
        choices = list(_choices(nodes))
        if choices and len(selectors) == DEEPEST:
            raise NoMessage("its choices would be nested too deeply in its translation")
        select = next((each for each in choices if each.kind == "select"), None)
        if select is not None:
            same = (each for each in choices if (each.name, each.kind) == (select.name, "select"))
            keys = dict.fromkeys(key for each in same for key in each.arms)
            arms = tuple(
                (key, self.built(
                    tuple(_chosen(nodes, select, _by_key(key))),
                    (*selectors, key), (*selects, key),
                ))
                for key in keys
            )  # fmt: skip
            return Branch(select, arms, *_around(nodes))
        if not choices:
            return Leaf(nodes, selectors, selects, Form("other", ()))
        return self._plural(nodes, choices, selectors, selects)

    def _plural(
        self,
        nodes: tuple[Node, ...],
        choices: Sequence[IcuChoice],
        selectors: tuple[str, ...],
        selects: tuple[str, ...],
    ) -> Branch:
        plural = choices[0]
        if len({(each.name, each.kind) for each in choices}) > 1:
            return self._outer(nodes, choices, selectors, selects)
        if len({each.offset for each in choices}) > 1:
            raise NoMessage("it counts from two offsets")
        ordinal = plural.kind == "selectordinal"
        source = self._options.source_lang
        own = _own_forms(choices, self._options)
        arms: list[tuple[str, Leaf]] = []
        for key, number in _explicit(choices, own, ordinal=ordinal):
            chosen = _chosen(nodes, plural, _by_number(key, category(source, number)))
            form = Form(key, (number,))
            arms.append((key, self._leaf(chosen, (*selectors, key), selects, form, None)))
        shown = _shows_count(nodes, choices, plural)
        for form in own:
            number = form.numbers[0] if shown else form.smallest
            named = category(source, number, ordinal=ordinal)
            chosen = _chosen(nodes, plural, _by_form(form, named, own, plural))
            arms.append((
                form.category,
                self._leaf(chosen, (*selectors, form.category), selects, form, form.category),
            ))  # fmt: skip
        held = {each.category for each in message_forms(source or "en", ordinal=ordinal)}
        optional = frozenset(held - plural.arms.keys())
        return Branch(plural, tuple(arms), *_around(nodes), optional)

    def _outer(
        self,
        nodes: tuple[Node, ...],
        choices: Sequence[IcuChoice],
        selectors: tuple[str, ...],
        selects: tuple[str, ...],
    ) -> Branch:
        """Return a plural with those of other counts in its arms, where its `#` is `{name}`.

        No number stands for it, so that only forms for one and for many can be told apart.
        """
        plural = choices[0]
        same = [each for each in choices if (each.name, each.kind) == (plural.name, plural.kind)]
        ordinal = plural.kind == "selectordinal"
        own = _own_forms(same, self._options)
        if any(each.offset for each in same) or not {each.category for each in own} <= _MANY:
            raise NoMessage("it counts two things in more forms than for one and for many")
        source = self._options.source_lang
        picks = [
            (key, _by_number(key, category(source, number)))
            for key, number in _explicit(same, own, ordinal=ordinal)
        ]
        picks += [
            (
                form.category,
                _by_form(form, category(source, form.smallest, ordinal=ordinal), own, plural),
            )
            for form in own
        ]
        arms = tuple(
            (
                key,
                self._arm(
                    tuple(_chosen(nodes, plural, _named(pick, plural.name))),
                    key,
                    selectors,
                    selects,
                ),
            )
            for key, pick in picks
        )
        return Branch(plural, arms, *_around(nodes))

    def _arm(
        self,
        nodes: tuple[Node, ...],
        key: str,
        selectors: tuple[str, ...],
        selects: tuple[str, ...],
    ) -> Branch | Leaf:
        inside = ((*selectors, key), (*selects, key))
        if any(True for _ in _choices(nodes)):
            return self.built(nodes, *inside)
        return self._leaf(nodes, *inside, Form(key, ()), None)

    def _leaf(
        self,
        nodes: Iterable[Node],
        selectors: tuple[str, ...],
        selects: tuple[str, ...],
        form: Form,
        named: str | None,
    ) -> Leaf:
        held = tuple(nodes)
        self._count(held)
        return Leaf(held, selectors, selects, form, named, counted=True)

    def _count(self, nodes: Sequence[Node]) -> None:
        self._leaves += 1
        self._nodes += len(nodes)
        if self._leaves > 2 * _MOST_LEAVES or self._nodes > _MOST_NODES:
            raise NoMessage("its choices give too many sentences")


_Pick = Callable[[dict[str, tuple[Node, ...]]], tuple[Node, ...]]


def _explicit(
    choices: Iterable[IcuChoice], own: Sequence[Form], *, ordinal: bool
) -> Iterator[tuple[str, int]]:
    """Yield the selectors that stay as they are: `=3`, and `zero` and `two` of a source.

    Flutter takes `zero` and `two` for 0 and 2 in every language.
    """
    kept = {} if ordinal else {"zero": 0, "two": 2}
    named = {form.category for form in own}
    for key in dict.fromkeys(key for each in choices for key in each.arms):
        if key.startswith("="):
            yield key, int(key[1:])
        elif key in kept and key not in named:
            yield key, kept[key]
        elif key not in CATEGORIES:
            raise NoMessage("a plural has a selector that is no category")


def _own_forms(choices: Iterable[IcuChoice], options: Options) -> Sequence[Form]:
    """Return the forms of the target language for the numbers that no `=1` of a source takes.

    Flutter takes `=1` for `one`, and of both the later one.
    """
    ordinal = any(each.kind == "selectordinal" for each in choices)
    keys = {key for each in choices for key in each.arms}
    found = message_forms(options.target_lang, ordinal=ordinal)
    left = [
        replace(form, numbers=tuple(each for each in form.numbers if f"={each}" not in keys))
        for form in found
    ]
    return [
        rest if rest.numbers else form
        for form, rest in zip(found, left, strict=True)
        if rest.numbers or form.category in keys or form.category == "other"
    ]


def _named(pick: _Pick, name: str) -> _Pick:
    """Pick an arm with its count as an argument, which means the same in the arm of another."""
    argument = IcuArgument(f"{{{name}}}")

    def picked(arms: dict[str, tuple[Node, ...]]) -> tuple[Node, ...]:
        return tuple(argument if isinstance(each, IcuCount) else each for each in pick(arms))

    return picked


def _by_key(key: str) -> _Pick:
    return lambda arms: arms.get(key, arms["other"])


def _by_number(key: str, named: str) -> _Pick:
    return lambda arms: arms.get(key, arms.get(named, arms["other"]))


def _by_form(form: Form, named: str, own: Sequence[Form], plural: IcuChoice) -> _Pick:
    """Pick the arm that a form is translated from.

    It is the arm of the source's category for a number of the form, or the form's own if the arms
    are those of the target language, as after a translation. An arm without the count ("One file")
    serves for a form of that one number alone.
    """
    target = {each.category for each in own}
    kept = set[str]() if plural.kind == "selectordinal" else {"zero", "two"} - target

    def pick(arms: dict[str, tuple[Node, ...]]) -> tuple[Node, ...]:
        translated = target == {key for key in arms if not key.startswith("=")} - kept
        found = arms.get(form.category if translated else named, arms["other"])
        lacks = not _has_count(found, plural) and _has_count(arms["other"], plural)
        return arms["other"] if lacks and len(form.numbers) > 1 else found

    return pick


def _shows_count(nodes: Iterable[Node], choices: Iterable[IcuChoice], plural: IcuChoice) -> bool:
    """Return whether the count is written anywhere in a message, in or beside its arms."""
    arms = (arm for each in choices for arm in each.arms.values())
    return _has_count(nodes, plural) or any(_has_count(arm, plural) for arm in arms)


def _has_count(nodes: Iterable[Node], plural: IcuChoice) -> bool:
    own = f"{{{plural.name}}}"
    return any(
        isinstance(node, IcuCount) or (isinstance(node, IcuArgument) and node.raw == own)
        for node in nodes
    )


def _choices(nodes: Iterable[Node]) -> Iterator[IcuChoice]:
    for node in nodes:
        if isinstance(node, IcuChoice):
            yield node
            for arm in node.arms.values():
                yield from _choices(arm)


def _around(nodes: Sequence[Node]) -> tuple[str, str]:
    """Return what is spelled before and behind a choice; nothing if there are several."""
    places = [index for index, node in enumerate(nodes) if isinstance(node, IcuChoice)]
    if len(places) != 1:
        return "", ""
    return written(nodes[: places[0]]), written(nodes[places[0] + 1 :])


def _chosen(nodes: Iterable[Node], choice: IcuChoice, pick: _Pick) -> Iterator[Node]:
    """Yield the nodes with an arm picked for each choice of the same variable."""
    for node in nodes:
        if not isinstance(node, IcuChoice):
            yield node
        elif (node.name, node.kind) == (choice.name, choice.kind):
            yield from _chosen(pick(node.arms), choice, pick)
        else:
            arms = {key: tuple(_chosen(arm, choice, pick)) for key, arm in node.arms.items()}
            yield replace(node, arms=arms)
