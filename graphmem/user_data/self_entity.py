"""The entity that stands for the user, when an export is imported as another user. Pure."""

from __future__ import annotations

from graphmem.runtime.errors import InvalidInput
from graphmem.runtime.field_types import Vector
from graphmem.runtime.text import name_key
from graphmem.user_data.export_document import UserExport
from graphmem.user_data.export_entries import ExportedEntity


def rename_self_entity(export: UserExport, user_id: str, vector: Vector) -> UserExport:
    """Return an export with the id of the user it is imported for as a name of the user's own entity.

    It takes the place of the id of the exported user, as a name or an alias, by which every write finds the entity.
    `vector` is that of the id. Raises InvalidInput when another entity has the id as its name.
    """
    for index, entity in enumerate(export.entities):
        keys = {entity.properties.name_key, *entity.properties.alias_keys}
        if not entity.properties.is_user and name_key(user_id) in keys:
            message = "has the id of the user as a name, and is not the user: rename it, or import as another user"
            raise InvalidInput(
                "An entity of the import would be taken for the user.",
                errors=[{"loc": ["entities", index, "properties", "name"], "msg": message}],
            )
    entities = [
        _with_user_id(entity, export.user_id, user_id, vector) if entity.properties.is_user else entity
        for entity in export.entities
    ]
    return export.model_copy(update={"entities": entities})


def find_self_entity(export: UserExport) -> ExportedEntity | None:
    """Return the entity that stands for the user, if the export has it."""
    return next((entity for entity in export.entities if entity.properties.is_user), None)


def _with_user_id(entity: ExportedEntity, old_id: str, new_id: str, vector: Vector) -> ExportedEntity:
    properties = entity.properties
    aliases = [alias for alias in properties.aliases if name_key(alias) != name_key(old_id)]
    changes: dict[str, object] = {}
    if properties.name_key == name_key(old_id):
        changes |= {"name": new_id, "name_key": name_key(new_id), "name_embedding": vector}
    elif properties.name_key != name_key(new_id):
        aliases.append(new_id)
    aliases = [alias for alias in aliases if name_key(alias) != changes.get("name_key", properties.name_key)]
    changes |= {
        "aliases": aliases,
        "alias_keys": [name_key(alias) for alias in aliases],
        "alias_text": " ".join(aliases),
    }
    return entity.model_copy(update={"properties": properties.model_copy(update=changes)})
