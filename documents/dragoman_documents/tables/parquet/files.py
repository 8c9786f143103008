"""Parquet files: opened, read some rows at a time, and written like their source."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from dragoman_documents.codec import DocumentError

_ENCRYPTED: Final = "it is encrypted; decrypt it first"
_END: Final = 8
"""Bytes at the end: the length of the metadata, and what kind of file it is."""
_ENCRYPTED_END: Final = b"PARE"
_SIGNATURE: Final = 28
"""Bytes behind metadata that anyone can read, if columns are encrypted: reading such a column ends
the process (pyarrow 26)."""
_BATCH_BYTES: Final = 8 * 1024**2
_BATCH_ROWS: Final = 8_192
GROUP_BYTES: Final = 32 * 1024**2
"""Rows of a row group are written once they have this many bytes: a larger group is split."""
_BUFFERS: Final = 32 * 1024**2
"""Of all columns together: without a limit each column of a row group is read whole."""
_LEAST_BUFFER: Final = 4 * 1024
_MOST_BUFFER: Final = 256 * 1024
_WIDTH: Final = 16
"""Bytes of a value whose type has no width, besides what is counted by the file."""


@contextmanager
def told(what: str = "it is damaged, or no Parquet file") -> Iterator[None]:
    """Raise DocumentError for what pyarrow reports of a file; not for a full disk or memory."""
    try:
        yield
    except MemoryError:
        raise
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        if "crypt" in str(error):
            raise DocumentError("encrypted", _ENCRYPTED) from None
        if "deeply nested" in str(error):
            raise DocumentError("bomb", "a column is nested too deeply; flatten it") from None
        raise DocumentError("corrupt", what) from None


def opened(path: Path) -> pq.ParquetFile:
    """Open a file. Raises DocumentError (`encrypted`, `corrupt`) and OSError."""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - _END))
        end = file.read()
    if end.endswith(_ENCRYPTED_END):
        raise DocumentError("encrypted", _ENCRYPTED)
    with told():
        metadata = pq.read_metadata(path)
        if int.from_bytes(end[:4], "little") - metadata.serialized_size == _SIGNATURE:
            raise DocumentError("encrypted", _ENCRYPTED)
        columns = max(1, metadata.num_columns)
        size = min(_MOST_BUFFER, max(_LEAST_BUFFER, _BUFFERS // columns))
        return pq.ParquetFile(path, buffer_size=size, pre_buffer=False)


def leaves(kind: pa.DataType) -> int:
    """Return how many columns of the file a column of this type has."""
    if isinstance(kind, pa.BaseExtensionType):
        return leaves(kind.storage_type)
    if pa.types.is_dictionary(kind):
        return 1
    return sum(leaves(kind.field(each).type) for each in range(kind.num_fields)) or 1


def batches(
    file: pq.ParquetFile, group: int, size: int, columns: Sequence[int] | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield `size` rows of a row group at a time: all columns, or those with these places.

    By places in the schema and not by names, of which two may be equal, and which may hold dots.
    Raises DocumentError.
    """
    indices = None if columns is None else _indices(file.schema_arrow, columns)
    with told():
        yield from file.reader.iter_batches(
            size, row_groups=[group], column_indices=indices, use_threads=False
        )


def _indices(schema: pa.Schema, columns: Sequence[int]) -> list[int]:
    """Return the columns of the file that these columns of the schema consist of."""
    ends = [0, *accumulate(leaves(each.type) for each in schema)]
    return [index for each in columns for index in range(ends[each], ends[each + 1])]


def rows_at_once(file: pq.ParquetFile, group: int, columns: Sequence[int] | None = None) -> int:
    """Return how many rows of a group take about _BATCH_BYTES, as far as the file tells."""
    found, schema = file.metadata.row_group(group), file.schema_arrow
    wanted = range(len(schema)) if columns is None else columns
    width = sum(_width(schema.field(each).type) for each in wanted)
    stored = int(found.total_byte_size // max(1, found.num_rows))
    return max(1, min(_BATCH_ROWS, _BATCH_BYTES // max(1, width, stored)))


def _width(kind: pa.DataType) -> int:
    try:
        return max(1, int(kind.bit_width) // 8)
    except ValueError:
        return _WIDTH * leaves(kind)


class LikeSource:
    """Writes a file with the rows of another one, compressed as that is."""

    def __init__(self, path: Any, source: pq.ParquetFile, schema: pa.Schema) -> None:
        """Begin the file; `schema` is that of the source, with new columns behind its own."""
        self._schema = schema
        self._held: list[pa.RecordBatch] = []
        self._bytes = 0
        self._writer = pq.ParquetWriter(path, schema, **_manner(source, schema))

    def add(self, arrays: Sequence[pa.Array]) -> None:
        """Write further rows, all columns of them."""
        made = pa.RecordBatch.from_arrays(list(arrays), schema=self._schema)
        self._held.append(made)
        self._bytes += made.get_total_buffer_size()
        if self._bytes >= GROUP_BYTES:
            self.end_group()

    def end_group(self) -> None:
        """End the row group."""
        if self._held:
            table = pa.Table.from_batches(self._held, self._schema)
            self._held, self._bytes = [], 0
            self._writer.write_table(table, row_group_size=max(1, table.num_rows))

    def close(self) -> None:
        """Write what is left, and the end of the file."""
        self.end_group()
        self._writer.close()


def _manner(source: pq.ParquetFile, schema: pa.Schema) -> dict[str, Any]:
    """Return how the source is written, as options of a writer."""
    parts = [source.schema.column(each) for each in range(len(source.schema))]
    paths = [each.path for each in parts]
    int96 = [each for each in parts if each.physical_type == "INT96"]
    times = [each for each in schema if pa.types.is_timestamp(each.type)]
    return {
        "compression": _compression(source, schema, paths),
        "use_deprecated_int96_timestamps": bool(int96) and len(int96) == len(times),
        "use_compliant_nested_type": not any(".list.item" in each for each in paths),
    }


def _compression(
    source: pq.ParquetFile, schema: pa.Schema, paths: Sequence[str]
) -> str | dict[str, str]:
    if not source.num_row_groups:
        return "snappy"
    group = source.metadata.row_group(0)
    found = [str(group.column(each).compression) for each in range(group.num_columns)]
    names = ["none" if each == "UNCOMPRESSED" else each.lower() for each in found]
    if len(set(names)) == 1:
        return names[0]
    made = {str(each.name): "snappy" for each in schema}
    made.update(zip(paths, names, strict=True))
    return made
