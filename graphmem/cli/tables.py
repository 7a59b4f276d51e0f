"""Tables for a terminal, laid out by rich: ids and names stay in one line, texts are wrapped between words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

if TYPE_CHECKING:
    from rich.table import Table

UNWRAPPED_COLUMNS = frozenset({"id", "run", "memory", "job", "score", "version", "type", "user", "session", "secret"})
"""Columns whose cells are ids, names or numbers, which are not wrapped."""

MAX_NAME_CELLS = 36
"""Cells up to which an id or a name is shown in one line: those of a UUID."""


def make_table(*columns: str, title: str | None = None, has_header: bool = True) -> Table:
    """Return an empty table; a word that is longer than its column goes on in the next line, to be copied."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(
        title=title,
        title_style="bold",
        title_justify="left",
        header_style="bold",
        show_header=has_header,
        box=SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
    for name in columns:
        table.add_column(name, no_wrap=name in UNWRAPPED_COLUMNS, overflow="fold")
    return table


def add_row(table: Table, *cells: object) -> None:
    """Add a row of plain values; markup in them is shown as it is, and missing cells are empty."""
    texts = [cell if isinstance(cell, Text) else Text("" if cell is None else str(cell)) for cell in cells]
    for column, text in zip(table.columns, texts, strict=False):
        column.no_wrap = column.no_wrap and text.cell_len <= MAX_NAME_CELLS
    table.add_row(*texts)
