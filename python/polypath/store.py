"""A folder of results that survives the processes that write it.

    runs-ID-CRC.parquet  many rows; written under another name, then renamed: complete or absent.
                         CRC is the CRC-32 of the file
    journal-ID.jsonl     the newest rows of a process that is running or was killed, one line and
                         its CRC-32 each
    scenario-KEY.toml    the scenario of a key

A row is written to the journal as soon as its run ends, so that a killed process loses none.
Journals are converted to Parquet every thousand rows, at the end, and, if a process was killed,
when the folder is opened the next time. Several processes (shards) may write to one folder.
"""

from __future__ import annotations

import json
import os
import uuid
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from polypath.scenario import Scenario

try:
    import fcntl
except ImportError:  # not on this system: journals of other processes are read, but not converted
    fcntl = None  # type: ignore[assignment]

#: The identity of a run, its status, and its metrics.
Row: TypeAlias = dict[str, Any]

ROWS_OF_A_JOURNAL = 1000


class DamagedStoreError(ValueError):
    """A file of results was changed after it was written.

    Attributes:
        path: The file.
    """

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(
            f"{path} is damaged: {reason}; delete it, and the sweep runs its part again"
        )
        self.path = path


class Store:
    """A folder of results, open for writing. It is created if it does not exist.

    Raises:
        OSError: The folder cannot be created, read or written.
    """

    def __init__(self, folder: str | PathLike[str]) -> None:
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        for journal in sorted(self.folder.glob("journal-*.jsonl")):
            _adopt(journal)
        self._journal: _Journal | None = None

    def add(self, row: Row) -> None:
        """Stores a row, which then survives a kill of the process."""
        if self._journal is None:
            self._journal = _Journal(self.folder)
        self._journal.add(row)
        if len(self._journal.rows) >= ROWS_OF_A_JOURNAL:
            self.close()

    def keep_scenario(self, scenario: Scenario) -> None:
        """Stores the scenario of a key."""
        path = self.folder / f"scenario-{scenario.key}.toml"
        if not path.exists():
            _write(path, lambda temporary: temporary.write_text(scenario.to_toml()))

    def rows(self, keys: Collection[str], engine: str) -> list[Row]:
        """The rows of these scenarios by this engine, each run once."""
        return _once(_read(self.folder, engine, keys))

    def close(self) -> None:
        """Turns the journal into Parquet."""
        if self._journal is not None:
            self._journal.finish()
            self._journal = None


def load_rows(folder: str | PathLike[str], engine: str | None = None) -> list[Row]:
    """All rows of a folder, each run once; of this engine, or of all engines. Writes nothing.

    Raises:
        FileNotFoundError: There is no such folder.
        DamagedStoreError: A file was changed after it was written.
    """
    if not Path(folder).is_dir():
        raise FileNotFoundError(f"{folder}: no such folder of results")
    return _once(_read(Path(folder), engine, None))


class _Journal:
    """Rows of this process that are not in Parquet yet. The lock shows that it is still running."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / f"journal-{uuid.uuid4().hex[:12]}.jsonl"
        self.rows: list[Row] = []
        self._file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL, 0o666)
        _lock(self._file)

    def add(self, row: Row) -> None:
        # One system call: the data that it has written survives the process.
        text = json.dumps(row).encode()
        os.write(self._file, b"%b %08x\n" % (text, zlib.crc32(text)))
        self.rows.append(row)

    def finish(self) -> None:
        _to_parquet(self.path, self.rows)
        os.close(self._file)


def _adopt(journal: Path) -> None:
    """Converts the journal of a process that has ended to Parquet."""
    try:
        file = os.open(journal, os.O_RDWR)
    except FileNotFoundError:
        return  # another process has converted it
    try:
        if _lock(file) and journal.exists():
            _to_parquet(journal, list(_lines(journal)))
    finally:
        os.close(file)


def _lock(file: int) -> bool:
    """Whether the lock was free; it is released when the process ends."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _to_parquet(journal: Path, rows: list[Row]) -> None:
    """Writes the rows under their new name, then deletes the journal: one of them always exists."""
    if rows:
        # Page checksums are for other readers: they do not cover the names of columns.
        buffer = pa.BufferOutputStream()
        pq.write_table(_table(rows), buffer, compression="zstd", write_page_checksum=True)
        content = buffer.getvalue().to_pybytes()
        name = journal.stem.replace("journal-", "runs-")
        part = journal.with_name(f"{name}-{zlib.crc32(content):08x}.parquet")
        _write(part, lambda temporary: temporary.write_bytes(content))
    journal.unlink(missing_ok=True)


def _write(path: Path, write: Callable[[Path], object]) -> None:
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}")
    try:
        write(temporary)
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _table(rows: list[Row]) -> pa.Table:
    """Columns of one type each; seeds have 64 bits without a sign."""
    names = dict.fromkeys(name for row in rows for name in row)
    columns = {}
    for name in names:
        values = [row.get(name) for row in rows]
        columns[name] = pa.array(values, type=pa.uint64() if name == "seed" else _type(values))
    return pa.table(columns)


def _type(values: Iterable[Any]) -> pa.DataType:
    types = {type(value) for value in values if value is not None}
    if types == {int}:
        return pa.int64()
    if types == {bool}:
        return pa.bool_()
    return pa.float64() if types <= {int, float} else pa.string()


def _lines(journal: Path) -> Iterator[Row]:
    for line in journal.read_bytes().splitlines(keepends=True):
        # Only the last line can be unfinished: its run was not reported as finished.
        if line.endswith(b"\n"):
            yield _parse(line, journal)


def _parse(line: bytes, journal: Path) -> Row:
    text, _, checksum = line.rstrip(b"\n").rpartition(b" ")
    if f"{zlib.crc32(text):08x}".encode() != checksum:
        raise DamagedStoreError(journal, "a line does not match its checksum")
    row: Row = json.loads(text)
    return row


def _read(folder: Path, engine: str | None, keys: Collection[str] | None) -> Iterator[Row]:
    def is_wanted(row: Row) -> bool:
        return engine in (None, row["engine"]) and (keys is None or row["key"] in keys)

    # Journals first: one that becomes Parquet meanwhile is then read twice rather than not at all.
    for journal in sorted(folder.glob("journal-*.jsonl")):
        try:
            rows = list(_lines(journal))
        except FileNotFoundError:
            continue
        yield from filter(is_wanted, rows)
    for part in sorted(folder.glob("runs-*.parquet")):
        content = part.read_bytes()
        if not part.stem.endswith(f"-{zlib.crc32(content):08x}"):
            raise DamagedStoreError(part, "it does not match the checksum in its name")
        table = pq.ParquetFile(pa.BufferReader(content)).read()
        if engine is not None:
            table = table.filter(pc.field("engine") == engine)
        if keys is not None:
            table = table.filter(pc.field("key").isin(pa.array(list(keys), pa.string())))
        yield from table.to_pylist()


def _once(rows: Iterable[Row]) -> list[Row]:
    """Each run once, the one that succeeded if there is one."""
    found: dict[tuple[Any, ...], Row] = {}
    for row in rows:
        run = (row["key"], row["seed"], row["engine"])
        if run not in found or (found[run]["status"] != "ok" and row["status"] == "ok"):
            found[run] = row
    return list(found.values())
