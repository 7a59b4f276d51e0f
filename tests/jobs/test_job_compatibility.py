"""Jobs that one version queues are done by workers of another, while both run in a rolling upgrade.

`stored_jobs.json` records what versions in use rely on: names that DBOS stores, the kinds of jobs, and the fields of
their payloads. What is recorded there stays until the next minor version, to which nobody upgrades from a version that
needs it; then it is removed from the code and from the file.
"""

from __future__ import annotations

import importlib
import json
import pkgutil
import re
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

import graphmem
from graphmem.jobs import store
from graphmem.jobs.job import JobStatus
from graphmem.jobs.kinds import JobKind, JobResult, StepRecord

FILE = Path(__file__).with_name("stored_jobs.json")

NOT_LOADED = ("graphmem.compat", "graphmem.evaluation", "graphmem.integrations")
"""Packages without jobs, which need extras."""


def find_kinds() -> list[JobKind[Any]]:
    """The kinds of jobs that are defined anywhere in the package."""
    kinds: dict[str, JobKind[Any]] = {}
    for module in pkgutil.walk_packages(graphmem.__path__, "graphmem."):
        if not module.name.startswith(NOT_LOADED):
            found = vars(importlib.import_module(module.name)).values()
            kinds |= {kind.name: kind for kind in found if isinstance(kind, JobKind)}
    return [kinds[name] for name in sorted(kinds)]


def describe_fields(model: Any) -> dict[str, str]:
    """The fields of a model by name, such as `required string`, or `optional string or null`."""
    schema = model.model_json_schema()
    return _describe_properties(schema, schema.get("$defs", {}))


def _describe_properties(schema: dict[str, Any], definitions: dict[str, Any]) -> dict[str, str]:
    required = schema.get("required", [])
    return {
        name: f"{'required' if name in required else 'optional'} {_describe_type(field, definitions)}"
        for name, field in schema["properties"].items()
    }


def _describe_type(schema: dict[str, Any], definitions: dict[str, Any]) -> str:
    match schema:
        case {"$ref": reference}:
            return _describe_type(definitions[reference.rpartition("/")[2]], definitions)
        case {"anyOf": choices}:
            return " or ".join(_describe_type(choice, definitions) for choice in choices)
        case {"enum": values}:
            return "one of " + ", ".join(map(str, values))
        case {"type": "array", "items": items}:
            return f"list of ({_describe_type(items, definitions)})"
        case {"type": "object", "properties": _}:
            return json.dumps(_describe_properties(schema, definitions))
    said = {name: value for name, value in schema.items() if name not in ("type", "title", "description", "default")}
    return f"{schema['type']} {json.dumps(said)}" if said else str(schema["type"])


def describe_stored() -> dict[str, Any]:
    """What this version stores of jobs."""
    return {
        "names": {
            "application": store.APPLICATION,
            "application version": store.APPLICATION_VERSION,
            "queue of jobs": store.JOB_QUEUE,
            "queue of ticks": store.TICK_QUEUE,
            "workflow of a job": store.JOB_WORKFLOW,
            "workflow of a tick": store.TICK_WORKFLOW,
            "schema": store.SCHEMA,
            "serializer": store.SERIALIZER.name(),
        },
        "statuses": sorted(JobStatus),
        "results": {model.__name__: sorted(model.model_fields) for model in (JobResult, StepRecord)},
        "kinds": {kind.name: describe_fields(kind.payload_type) for kind in find_kinds()},
    }


def find_problems(recorded: dict[str, Any], current: dict[str, Any]) -> list[str]:
    """What a version that stores `current` breaks for one that stores `recorded`, with what to do about each."""
    problems = [
        f"the {name} was {value!r} and is {current['names'].get(name)!r}: keep it, or processes of both versions do "
        "not find each other's jobs."
        for name, value in recorded["names"].items()
        if current["names"].get(name) != value
    ]
    if current["statuses"] != recorded["statuses"]:
        problems.append("the statuses of jobs changed: another version cannot read a new one, nor may one go.")
    for model, fields in recorded["results"].items():
        gone = sorted(set(fields) - set(current["results"].get(model, [])))
        problems += [f"{model}.{name} is gone: keep it until the next minor version." for name in gone]
    for kind, fields in recorded["kinds"].items():
        if kind not in current["kinds"]:
            problems.append(
                f"the kind {kind!r} is gone: jobs of it may be queued, so keep its name and its handler until the next "
                "minor version."
            )
            continue
        problems += _find_problems_of_kind(kind, fields, current["kinds"][kind])
    return problems


def _find_problems_of_kind(kind: str, recorded: dict[str, str], current: dict[str, str]) -> list[str]:
    problems = []
    for name, field in recorded.items():
        now, of_kind = current.get(name), f"the field {name!r} of {kind!r}"
        if now is None:
            problems.append(
                f"{of_kind} is gone: workers of the earlier version read it, so keep the old name until the next minor "
                "version."
            )
        elif now == field.replace("optional", "required", 1) != field:
            problems.append(f"{of_kind} is required now: jobs are queued without it; keep a default.")
        elif now.partition(" ")[2] != field.partition(" ")[2]:
            problems.append(
                f"{of_kind} was {field} and is {now}: add a field of another name with a default, and write both until "
                "the next minor version."
            )
    problems += [
        f"the new field {name!r} of {kind!r} is required: jobs of the earlier version have none; give it a default."
        for name, field in current.items()
        if name not in recorded and field.startswith("required")
    ]
    return problems


@pytest.fixture(scope="module")
def recorded() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(FILE.read_text("utf-8"))
    return found


def test_jobs_of_the_recorded_versions_can_be_done(recorded: dict[str, Any]) -> None:
    assert find_problems(recorded, describe_stored()) == []


def test_everything_that_is_stored_is_recorded(recorded: dict[str, Any]) -> None:
    current = describe_stored()
    expected = json.dumps(current, indent=1, sort_keys=True) + "\n"
    assert current == recorded, f"Nothing may break (see the other test); then {FILE.name} must read:\n{expected}"


def test_fields_of_a_later_version_are_ignored() -> None:
    forbidding = [
        kind.name
        for kind in find_kinds()
        if "additionalProperties': False" in str(kind.payload_type.model_json_schema())
    ]
    assert forbidding == [], "payloads ignore fields that they do not know, so that a later version can add some"


def test_the_kinds_of_a_worker_are_all_found() -> None:
    assert {"extraction", "consolidate", "maintain", "erasure", "webhook", "reembed", "move"} <= {
        kind.name for kind in find_kinds()
    }


CHANGES: list[tuple[Any, str]] = [
    (lambda kinds: kinds.pop("summary"), "the kind 'summary' is gone: .* keep its name and its handler"),
    (lambda kinds: kinds["summary"].pop("through"), "'through' of 'summary' is gone: .* keep the old name"),
    (
        lambda kinds: kinds["summary"].update(until=kinds["summary"].pop("through")),
        "'through' of 'summary' is gone.* the new field 'until' of 'summary' is required: .* give it a default",
    ),
    (
        lambda kinds: kinds["summary"].update(through="required string"),
        "'through' of 'summary' was required integer and is required string: add a field of another name",
    ),
    (
        lambda kinds: kinds["summary"].update(style="required string"),
        "the new field 'style' of 'summary' is required: .* give it a default",
    ),
    (
        lambda kinds: kinds["session_closing"].update(reason="required string or null"),
        "'reason' of 'session_closing' is required now",
    ),
]


@pytest.mark.parametrize(("change", "message"), CHANGES)
def test_a_change_that_breaks_another_version_is_named(recorded: dict[str, Any], change: Any, message: str) -> None:
    current = deepcopy(recorded)
    change(current["kinds"])
    assert re.search(message, " ".join(find_problems(recorded, current)))


def test_a_new_kind_and_a_field_with_a_default_break_nothing(recorded: dict[str, Any]) -> None:
    current = deepcopy(recorded)
    current["kinds"]["new"] = {"anything": "required string"}
    current["kinds"]["summary"]["style"] = "optional string"
    assert find_problems(recorded, current) == []
