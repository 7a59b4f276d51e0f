"""Tables that fit the terminal: cells are wrapped between words, and only what is longer than its column is cut."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from rich.cells import cell_len, chop_cells, split_graphemes
from rich.text import Text

from graphmem.text.tokenising import UNSPACED_LETTER

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions

UNWRAPPED_COLUMNS = frozenset({"id", "run", "memory", "job", "score", "version", "type", "user", "session", "secret"})
"""Columns whose cells are ids, names or numbers, which are never wrapped."""

FOLDED_COLUMNS = frozenset({"user", "users", "session", "key", "address", "result", "to fix it", "details"})
"""Columns of names, addresses and commands: what is longer than its column goes on in the next line, to be copied."""

GAP = 2
"""Spaces between two columns."""

MAX_NAME_CELLS = 36
"""Cells up to which an id or a name is shown in one line if possible: those of a UUID."""

MAX_WORD_CELLS = 24
"""Cells up to which a word is kept whole before other columns get the space that they need; addresses are longer."""

MIN_TEXT_CELLS = 12
"""Cells to which texts are narrowed before ids and names are."""

MIN_COLUMN_CELLS = 6
"""Cells to which any column is narrowed at last."""

ELLIPSIS = "…"

HANGUL = ("\uac00", "\ud7af")
"""The first and last syllable of a script without letters between which a line may break: Korean has spaces."""


@dataclass
class TextTable:
    """A table without vertical lines; each cell is a text, perhaps of several lines."""

    columns: Sequence[str]
    title: str | None = None
    has_header: bool = True
    rows: list[list[Text]] = field(default_factory=list)

    @property
    def row_count(self) -> int:
        """How many rows there are."""
        return len(self.rows)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        """Yield the lines for a terminal."""
        widths = fit_columns(self._columns, options.max_width - GAP * (len(self.columns) - 1))
        if self.title:
            yield Text(self.title, style="bold")
        if self.has_header:
            yield from self._layout([Text(name, style="bold") for name in self.columns], widths)
            yield Text("─" * (sum(widths) + GAP * (len(widths) - 1)))
        for row in self.rows:
            yield from self._layout(row, widths)

    def _layout(self, row: Sequence[Text], widths: Sequence[int]) -> Iterator[Text]:
        """Yield the lines of a row."""
        cells = [
            wrap_text(text.plain, width, fold=name in FOLDED_COLUMNS)
            for name, text, width in zip(self.columns, row, widths, strict=True)
        ]
        for number in range(max(map(len, cells))):
            line = Text(no_wrap=True)
            for text, lines, width in zip(row, cells, widths, strict=True):
                shown = lines[number] if number < len(lines) else ""
                line.append(shown, style=text.style)
                line.append(" " * (width - cell_len(shown) + GAP))
            line.rstrip()
            yield line

    @property
    def _columns(self) -> list[Column]:
        return [
            Column([name if self.has_header else "", *(row[place].plain for row in self.rows)], name)
            for place, name in enumerate(self.columns)
        ]


@dataclass(frozen=True)
class Column:
    """The texts of a column, the header among them, and how wide they are in cells of the terminal."""

    texts: Sequence[str]
    name: str = ""

    @cached_property
    def natural_width(self) -> int:
        """The width without a line break."""
        return max((cell_len(line) for text in self.texts for line in text.split("\n")), default=0)

    @property
    def is_name(self) -> bool:
        """Whether the cells are ids, names or numbers."""
        return self.name in UNWRAPPED_COLUMNS

    @cached_property
    def wanted_width(self) -> int:
        """The width with which no word of ordinary length is cut."""
        if self.is_name:
            return min(self.natural_width, MAX_NAME_CELLS)
        units = (unit for text in self.texts for word in text.split() for unit in split_units(word))
        return min(max(map(cell_len, units), default=0), MAX_WORD_CELLS)


def fit_columns(columns: Sequence[Column], available: int) -> list[int]:
    """Return the widths with which columns fit: words stay whole where possible, the longest texts wrap most."""
    widths = [column.wanted_width for column in columns]
    narrowing = [width if column.is_name else MIN_TEXT_CELLS for column, width in zip(columns, widths, strict=True)]
    for floors in (narrowing, [MIN_COLUMN_CELLS] * len(columns)):
        while sum(widths) > available and (wide := [i for i, width in enumerate(widths) if width > floors[i]]):
            widths[max(wide, key=lambda place: widths[place])] -= 1
    for _ in range(available - sum(widths)):
        wrapped = [place for place, column in enumerate(columns) if widths[place] < column.natural_width]
        if not wrapped:
            break
        widths[min(wrapped, key=lambda place: widths[place] / columns[place].natural_width)] += 1
    return widths


def split_units(word: str) -> list[str]:
    """Return the parts of a word between which a line may break: the letters of scripts without spaces, else itself."""
    units: list[str] = []
    was_letter = False
    for start, end, _ in split_graphemes(word)[0]:
        grapheme = word[start:end]
        is_letter = bool(UNSPACED_LETTER.match(grapheme)) and not HANGUL[0] <= grapheme[0] <= HANGUL[1]
        is_punctuation = unicodedata.category(grapheme[0]).startswith("P")
        if not units or is_letter or (was_letter and not is_punctuation):
            units.append(grapheme)
        else:
            units[-1] += grapheme
        was_letter = is_letter or (was_letter and is_punctuation)
    return units


def wrap_text(text: str, width: int, *, fold: bool = False) -> list[str]:
    """Return a text as lines of at most `width` cells; a word that is longer is cut, or broken with `fold`."""
    lines: list[str] = []
    for paragraph in text.split("\n"):
        line = ""
        for word in paragraph.split():
            for place, unit in enumerate(split_units(word)):
                gap = " " if line and place == 0 else ""
                if cell_len(line + gap + unit) <= width:
                    line += gap + unit
                    continue
                if line:
                    lines.append(line)
                *whole_lines, line = chop_cells(unit, width) if fold else [_cut(unit, width)]
                lines += whole_lines
        lines.append(line)
    return lines


def _cut(text: str, width: int) -> str:
    """Return the beginning of a text with an ellipsis, or the text when it fits."""
    if cell_len(text) <= width:
        return text
    kept = ""
    for start, end, _ in split_graphemes(text)[0]:
        if cell_len(kept + text[start:end]) > width - 1:
            break
        kept += text[start:end]
    return kept + ELLIPSIS


def make_table(*columns: str, title: str | None = None) -> TextTable:
    """Return an empty table."""
    return TextTable(columns, title)


def add_row(table: TextTable, *cells: object) -> None:
    """Add a row of plain values; markup in them is shown as it is, and missing cells are empty."""
    texts = [cell if isinstance(cell, Text) else Text("" if cell is None else str(cell)) for cell in cells]
    table.rows.append(texts + [Text()] * (len(table.columns) - len(texts)))
