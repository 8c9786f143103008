"""Texts in the cells of a column: strings, lists of strings, strings in a struct."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, cast

import pyarrow as pa
import pyarrow.compute as pc

from dragoman_documents.codec import DocumentError

Cell = bytes | list[bytes | None] | None
"""UTF-8 as a rule: whoever writes a file may put other bytes into a string."""
_STRINGS: Final = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
_LISTS: Final = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)


class ParquetLeaf(NamedTuple):
    """A column, or a member of one that is a struct."""

    name: str
    place: int
    """Of the column in the schema."""
    path: tuple[int, ...]
    """The places of the members that lead to it in a struct; empty for a column."""
    type: pa.DataType

    @property
    def is_text(self) -> bool:
        """Whether its cells are texts or lists of them."""
        return _is_string(_member(self.type))

    @property
    def is_empty(self) -> bool:
        """Whether all its cells are null, as of a column without a value whose type none knows."""
        return bool(pa.types.is_null(self.type))

    @property
    def is_list(self) -> bool:
        """Whether a cell may have several texts."""
        return _is_list(self.type)


def leaves_of(schema: pa.Schema) -> list[ParquetLeaf]:
    """Return the columns in their order, then the members of those that are structs."""
    columns = [ParquetLeaf(each.name, at, (), each.type) for at, each in enumerate(schema)]
    return [*columns, *(member for each in columns for member in _members(each))]


def _members(leaf: ParquetLeaf) -> Iterator[ParquetLeaf]:
    if not pa.types.is_struct(leaf.type):
        return
    for at in range(leaf.type.num_fields):
        field = leaf.type.field(at)
        name, path = f"{leaf.name}.{field.name}", (*leaf.path, at)
        member = ParquetLeaf(name, leaf.place, path, field.type)
        yield member
        yield from _members(member)


def new_type(leaf: ParquetLeaf) -> pa.DataType:
    """Return the type of a new column for translations: that of the source, without a dictionary.

    A dictionary with small numbers might not hold all translations.
    """
    return leaf.type.value_type if pa.types.is_dictionary(leaf.type) else leaf.type


def cells(column: pa.Array, leaf: ParquetLeaf) -> list[Cell]:
    """Return the cells of a column that has texts."""
    for member in leaf.path:
        column = column.flatten()[member]  # with the nulls of the struct
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    return cast("list[Cell]", column.cast(_in_bytes(column.type)).to_pylist())


def column_of(found: Sequence[Cell], kind: pa.DataType) -> pa.Array:
    """Return a column of this type with these cells. Raises DocumentError if it cannot hold them.

    Bytes that are no UTF-8 stay what they are.
    """
    if pa.types.is_null(kind):
        return pa.nulls(len(found))
    flat = kind.value_type if pa.types.is_dictionary(kind) else kind
    made = pa.array(found, _in_bytes(flat))
    made = pc.cast(made, options=pc.CastOptions(flat, allow_invalid_utf8=True))
    if flat == kind:
        return made
    try:
        return made.dictionary_encode().cast(kind)
    except pa.ArrowException:
        what = "a column's dictionary cannot hold its translations; leave out --in-place"
        raise DocumentError("too_large", what) from None


def shown(column: pa.Array) -> list[str]:
    """Return the values of a column of ids for people."""
    return [_shown(each) for each in column]


def _shown(value: pa.Scalar) -> str:
    try:
        return str(value.as_py())
    except (UnicodeDecodeError, ValueError, OverflowError):
        return "?"


def _is_string(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return any(is_it(kind) for is_it in _STRINGS)


def _is_list(kind: pa.DataType) -> bool:
    return any(is_it(kind) for is_it in _LISTS)


def _member(kind: pa.DataType) -> pa.DataType:
    """Return the type of what a list holds, if it is a list and no dictionary of strings."""
    if not _is_list(kind):
        return kind
    return pa.null() if pa.types.is_dictionary(kind.value_type) else kind.value_type


def _in_bytes(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(pa.large_binary(), kind.list_size)
    if _is_list(kind):
        return pa.large_list(pa.large_binary())
    return pa.large_binary()
