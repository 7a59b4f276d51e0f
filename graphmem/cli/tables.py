"""Tables for a terminal: a model's columns, the format of values, and the table for rich.

Ids and names stay on one line; texts are wrapped between words.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime, tzinfo
from typing import TYPE_CHECKING, Any, TypeAlias

from graphmem.cli.command import Verbatim
from graphmem.runtime.short_ids import FULL_ID_CHARS, shorten_id

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

Renderable: TypeAlias = "RenderableType"
"""A text or a table; texts are shown without markup."""

SHORT_ID_COLUMNS = frozenset({"id", "run", "memory", "memories", "job"})
"""Columns that show the first characters of ids, which commands accept."""

UNWRAPPED_COLUMNS = frozenset({"id", "run", "memory", "job", "score", "version", "type", "user", "session", "secret"})
"""Columns of ids, names or numbers, which are not wrapped."""

MAX_NAME_CELLS = 36
"""Most terminal cells of an id or a name on one line: the length of a UUID."""

Column: TypeAlias = str | Callable[[Any], object]
"""A cell's value: a (dotted) attribute of the model, or the result of a function."""


class Columns:
    """The columns of a model's table by name, or a sentence for an empty result.

    An `optional` column is left out if no row has a value in it.
    """

    def __init__(self, empty: str = "", *, optional: Collection[str] = (), **columns: Column) -> None:
        self.empty = empty
        self.optional = optional
        self.columns = {name.strip("_").replace("_", " "): column for name, column in columns.items()}

    def __call__(self, shown: Any) -> list[Renderable]:
        """Return a page, a list or one model as a table; after a page, also how to list the next one."""
        from graphmem.runtime.paging import Page

        if isinstance(shown, Page):
            rows, cursor = shown.items, shown.next_cursor
        else:
            rows, cursor = shown if isinstance(shown, list) else [shown], None
        following = [Verbatim(f"There is more: --cursor {cursor}")] if cursor else []
        return [self.table(rows) if rows else self.empty, *following]

    def table(self, models: Iterable[object], title: str | None = None) -> Table:
        """Return a table with a row for each model."""
        rows = [
            {name: _format_cell(name, _read(model, column)) for name, column in self.columns.items()}
            for model in models
        ]
        used = [name for name in self.columns if name not in self.optional or any(row[name] for row in rows)]
        table = make_table(*used, title=title)
        for row in rows:
            add_row(table, *(row[name] for name in used))
        return table


def _read(model: object, column: Column) -> object:
    if not isinstance(column, str):
        return column(model)
    value: object = model
    for attribute in column.split("."):
        value = None if value is None else getattr(value, attribute)
    return value


def _format_cell(column: str, value: object) -> str:
    if isinstance(value, (list, tuple)):
        return ", ".join(_format_cell(column, item) for item in value)
    text = format_value(value)
    return shorten_id(text) if column in SHORT_ID_COLUMNS and len(text) == FULL_ID_CHARS else text


def format_value(value: object) -> str:
    """Return a value as text for a cell: None is empty, numbers have two decimals, objects are JSON."""
    if value is None:
        return ""
    if isinstance(value, datetime):
        return format_time(value)
    if isinstance(value, float):
        return f"{value:.2f}"
    if isinstance(value, Mapping):
        return json.dumps(value, ensure_ascii=False, default=str)
    return str(value)


def format_time(moment: datetime | None, zone: tzinfo | None = None) -> str:
    """Return a time in a zone (None: this machine's) as its date, with the time of day unless midnight."""
    if moment is None:
        return "–"
    moment = moment.astimezone(zone)
    return f"{moment:%Y-%m-%d}" if (moment.hour, moment.minute) == (0, 0) else f"{moment:%Y-%m-%d %H:%M}"


def make_table(*columns: str, title: str | None = None, has_header: bool = True) -> Table:
    """Return an empty table; words longer than their column continue on the next line, so that they can be copied."""
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
    """Add a row of plain values, without markup; missing cells are empty."""
    from rich.text import Text

    texts = [cell if isinstance(cell, Text) else Text("" if cell is None else str(cell)) for cell in cells]
    for column, text in zip(table.columns, texts, strict=False):
        column.no_wrap = column.no_wrap and text.cell_len <= MAX_NAME_CELLS
    table.add_row(*texts)


def name_value_pairs(values: Mapping[str, object]) -> Table:
    """Return a table of names and their values."""
    table = make_table("name", "details", has_header=False)
    for name, value in values.items():
        add_row(table, name.replace("_", " "), value)
    return table
