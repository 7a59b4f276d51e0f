"""Columns of a table that grows: numbers, codes of words, vectors, and the rows of each member of a set. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Rows: TypeAlias = NDArray[np.int64]
Mask: TypeAlias = NDArray[np.bool_]
Scores: TypeAlias = NDArray[np.float64]

_FIRST_CAPACITY = 64


class Column:
    """Values of one numeric type by row, or vectors of one length."""

    def __init__(self, dtype: Any, width: int | None = None) -> None:
        self._shape: tuple[int, ...] = () if width is None else (width,)
        self._values: NDArray[Any] = np.zeros((_FIRST_CAPACITY, *self._shape), dtype=dtype)
        self._size = 0

    @property
    def values(self) -> NDArray[Any]:
        """The values of all rows; valid until a row is added."""
        return self._values[: self._size]

    @property
    def nbytes(self) -> int:
        """The memory that the column takes."""
        return int(self._values.nbytes)

    def append(self, value: Any) -> None:
        """Add a row."""
        if self._size == len(self._values):
            self.reserve(self._size + self._size // 4)
        self._values[self._size] = value
        self._size += 1

    def reserve(self, rows: int) -> None:
        """Make room for so many rows in all."""
        if rows > len(self._values):
            grown = np.zeros((rows, *self._shape), dtype=self._values.dtype)
            grown[: self._size] = self._values[: self._size]
            self._values = grown

    def set(self, row: int, value: Any) -> None:
        """Replace the value of a row."""
        self._values[row] = value


class Words:
    """Words by row, each stored as a number."""

    def __init__(self) -> None:
        self._codes: dict[str | None, int] = {}
        self.column = Column(np.int32)

    def code(self, word: str | None) -> int:
        """Return the number of a word, a new one if it is new."""
        return self._codes.setdefault(word, len(self._codes))

    def matches(self, words: Iterable[str]) -> Mask:
        """Return which rows have one of the words."""
        codes = [self._codes[word] for word in words if word in self._codes]
        return np.isin(self.column.values, codes)


class Members:
    """The members of a set by row, such as tags, and the rows of each member."""

    def __init__(self) -> None:
        self._rows: dict[str, set[int]] = defaultdict(set)

    def replace(self, row: int, old: Sequence[str], new: Sequence[str]) -> None:
        """Replace the members of a row."""
        for member in old:
            self._rows[member].discard(row)
        for member in new:
            self._rows[member].add(row)

    def matches(self, member: str, size: int) -> Mask:
        """Return which of `size` rows have a member."""
        mask = np.zeros(size, dtype=bool)
        mask[list(self._rows.get(member, ()))] = True
        return mask


def cosines(vectors: NDArray[np.float32], vector: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the cosines of all vectors and one, each of length 1; an absent one gives 0.

    A product of matrices would keep a second core busy for half a millisecond's work.
    """
    result: NDArray[np.float32] = np.vecdot(vectors, vector)
    return result


def unit_vector(vector: Any, dimension: int) -> NDArray[np.float32]:
    """Return a vector of Neo4j's or a list as an array of length 1; zeros for none."""
    if vector is None:
        return np.zeros(dimension, dtype=np.float32)
    array = np.asarray(vector.to_numpy() if hasattr(vector, "to_numpy") else vector, dtype=np.float32)
    length = float(np.linalg.norm(array))
    return array / np.float32(length) if length else array


def best_rows(rows: Rows, scores: Scores | NDArray[np.float32], limit: int) -> Rows:
    """Return up to `limit` of the rows by their scores, best first; of equal ones the earlier row comes first."""
    if len(rows) > limit:
        # A row with the score of the last place may have an earlier one beside it, so that all of that score are kept.
        least = np.partition(scores, len(rows) - limit)[len(rows) - limit]
        rows, scores = rows[scores >= least], scores[scores >= least]
    order = np.argsort(-scores, kind="stable")[:limit]
    return rows[order]
