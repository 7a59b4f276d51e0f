"""Reading YAML as a value of JSON types."""

from __future__ import annotations

from typing import Any

import yaml

from graphmem.runtime.errors import InvalidInput
from graphmem.runtime.json_values import MAX_JSON_DEPTH

_TAG_PREFIX = "tag:yaml.org,2002:"
_JSON_TYPES = ("null", "bool", "int", "float", "str", "seq", "map")


def parse_yaml(text: str) -> Any:
    """Return the value of YAML.

    Raises InvalidInput for what is not YAML, and for aliases and deep nesting, which make a small text expensive.
    """
    loader = _json_types_loader()
    depth = 0
    try:
        for event in yaml.parse(text, loader):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > MAX_JSON_DEPTH or isinstance(event, yaml.AliasEvent):
                raise InvalidInput(f"The import has aliases or more than {MAX_JSON_DEPTH} levels.")
        return yaml.load(text, loader)
    except (yaml.YAMLError, ValueError, LookupError) as error:  # `!!bool x` is a KeyError, `!!int ""` an IndexError
        raise InvalidInput("The import is neither JSON nor JSONL nor YAML.") from error


def _json_types_loader() -> type[yaml.SafeLoader]:
    """Return a loader of JSON types: it reads a time as text and refuses tags such as `!!binary` and `!!set`."""
    base: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    known = {None, *(_TAG_PREFIX + name for name in _JSON_TYPES)}
    return type(
        "JsonTypesLoader",
        (base,),
        {
            "yaml_constructors": {tag: make for tag, make in base.yaml_constructors.items() if tag in known},
            "yaml_implicit_resolvers": {
                first: [(tag, pattern) for tag, pattern in resolvers if tag != _TAG_PREFIX + "timestamp"]
                for first, resolvers in base.yaml_implicit_resolvers.items()
            },
        },
    )
