"""The parts of DBOS that are used beyond its public API: the installed version has them, and one module uses them."""

from __future__ import annotations

import inspect
import re
import time
from pathlib import Path

import sqlalchemy as sa
from dbos import DBOS

import graphmem
from graphmem.jobs.dbos_internals import STATUS_COLUMNS, STATUS_TABLE, TEXT_COLUMNS
from graphmem.jobs.store import JobStore, create_engine
from graphmem.runtime.settings import Settings
from tests.jobs.conftest import both_stores

PACKAGE = Path(graphmem.__file__).parent
PRIVATE_NAMES = re.compile(rf"\b({'|'.join([STATUS_TABLE, *TEXT_COLUMNS])})\b|\bDBOS\._|\bdbos\._")


@both_stores
def test_the_installed_dbos_has_the_tables_and_columns_that_are_used(settings: Settings) -> None:
    used = {STATUS_TABLE: set(STATUS_COLUMNS)} | {
        table: {"workflow_uuid", *columns} for table, columns in TEXT_COLUMNS.items()
    }
    store = JobStore.open(settings)
    inspector = sa.inspect(store.engine)
    columns = {
        table: {column["name"] for column in inspector.get_columns(table, schema=store.schema)} for table in used
    }
    store.close()
    assert {table: names - columns[table] for table, names in used.items()} == {table: set() for table in used}


def test_the_installed_dbos_recovers_the_jobs_of_named_executors() -> None:
    signature = inspect.signature(DBOS._recover_pending_workflows)
    assert list(signature.parameters) == ["executor_ids"]


def test_sqlite_has_the_time_function_that_dbos_uses_from_python_3_12_on(tmp_path: Path) -> None:
    """SQLite before 3.42 returns null, and DBOS stores no job."""
    engine = create_engine(sa.URL.create("sqlite", database=str(tmp_path / "jobs.sqlite")))
    with engine.connect() as connection:
        now = connection.execute(sa.text("SELECT unixepoch('subsec')")).scalar_one()
    engine.dispose()
    assert abs(now - time.time()) < 60


def test_only_one_module_uses_private_parts_of_dbos() -> None:
    modules = [path for path in PACKAGE.rglob("*.py") if PRIVATE_NAMES.search(path.read_text("utf-8"))]
    assert [path.relative_to(PACKAGE).as_posix() for path in modules] == ["jobs/dbos_internals.py"]
