// Entities: the nodes that facts connect.

// name: find_by_keys(group_ids, keys)
// Find entities by the keys of their names or aliases.
{{entities_with_keys}}
RETURN {{entity_details}} AS entity

// name: find_named(group_id, entity)
// Find one entity of a user, given by id or by the key of its name.
CALL () {
  MATCH (e:Entity {uuid: $entity}) WHERE e.group_id = $group_id RETURN e
  UNION
  MATCH (e:Entity {group_id: $group_id, name_key: $entity}) RETURN e
}
RETURN {{entity_details}} AS entity LIMIT 1

// name: find_nameable(group_id, group_ids, keys, limit)
// Find the entities of a user that texts may name: all of them if they are at most `limit`, which costs less than looking
// up every key that the texts contain, else those with one of the keys.
CALL () {
  MATCH (e:Entity {group_id: $group_id}) RETURN e LIMIT $limit + 1
}
WITH collect(e) AS first
CALL (first) {
  WITH first WHERE size(first) <= $limit
  UNWIND first AS e
  RETURN e
  UNION
  WITH first WHERE size(first) > $limit
  {{entities_with_keys}}
  RETURN e
}
WITH e ORDER BY e.created_at, e.uuid
RETURN {{entity_names}} AS entity

// name: create_entities(group_id, entities)
// Create entities with their type as a label; one whose name is taken stays unchanged.
MATCH (u:User {group_id: $group_id})
UNWIND $entities AS properties
MERGE (e:Entity {group_id: properties.group_id, name_key: properties.name_key})
ON CREATE SET e = properties, e.revision = u.revision
SET e:$(properties.type)
RETURN {{entity_names}} AS entity

// name: fetch_by_ids(group_ids, ids)
// Fetch entities by id.
UNWIND $ids AS id
MATCH (e:Entity {uuid: id}) WHERE e.group_id IN $group_ids
RETURN e {.uuid, .name, .type} AS entity

// name: get_with_memory_count(group_ids, entity_id)
// Fetch one entity with its memory count.
MATCH (e:Entity {uuid: $entity_id}) WHERE e.group_id IN $group_ids
RETURN {{entity_node}} AS entity, {{memory_count}} AS memory_count

// name: find_folded(group_ids, folded, foldings)
// Find entities by a name or an alias without its accents: each entity is read, so only where no key is equal.
MATCH (e:Entity) WHERE e.group_id IN $group_ids
  AND any(key IN [e.name_key] + coalesce(e.alias_keys, []) WHERE {{folded_key}} = $folded)
RETURN {{entity_details}} AS entity

// name: list_page(group_ids, folded, foldings, type, after_key, after_id, limit)
// List one page of entities by name, those alone whose name or alias contains a text once both are folded.
MATCH (e:Entity) WHERE e.group_id IN $group_ids
  AND ($folded IS NULL OR any(key IN [e.name_key] + coalesce(e.alias_keys, []) WHERE {{folded_key}} CONTAINS $folded))
  AND ($type IS NULL OR e.type = $type)
  AND ($after_key IS NULL OR e.name_key > $after_key OR e.name_key = $after_key AND e.uuid > $after_id)
WITH e ORDER BY e.name_key, e.uuid LIMIT $limit
RETURN {{entity_node}} AS entity, {{memory_count}} AS memory_count

// name: rename_entity(group_id, entity_id, canonical_name, name_key, detail_sources, vector, now)
// Set the name of an entity; it is no alias of it any more.
MATCH (u:User {group_id: $group_id})
MATCH (e:Entity {uuid: $entity_id}) WHERE e.group_id = $group_id
WITH u, e, [at IN range(0, size(coalesce(e.alias_keys, [])) - 1) WHERE e.alias_keys[at] <> $name_key] AS kept
SET e.aliases = nullIf([at IN kept | e.aliases[at]], []), e.alias_keys = nullIf([at IN kept | e.alias_keys[at]], [])
SET e.name = $canonical_name, e.name_key = $name_key, e.detail_sources = $detail_sources, e.name_embedding = $vector, e.next_vector = null,
    e.updated_at = $now, e.revision = u.revision
WITH e
{{link_aliases}}
WITH e
{{pack_entity_vector}}

// name: list_facts(group_ids, entity_id, {{as_of_params}}, limit)
// Fetch the facts about an entity as of two times, the most important first.
{{as_of_params}}
MATCH (e:Entity {uuid: $entity_id})
{{facts_of_entity}}
WITH * WHERE {{as_of_filter}} AND {{is_statement}}
WITH r ORDER BY r.importance DESC, r.known_from DESC LIMIT $limit
RETURN {{fact_version}}

// name: list_ids(group_id)
// List the ids of a user's entities.
MATCH (e:Entity {group_id: $group_id}) RETURN e.uuid AS id ORDER BY id

// name: erase_unreferenced(group_id, ids)
// Erase entities that no version of a memory refers to, with their aliases and what links messages to them; return their
// ids. The entity of the user stays.
UNWIND $ids AS id
MATCH (e:Entity {uuid: id}) WHERE e.group_id = $group_id AND NOT coalesce(e.is_user, false)
  AND NOT EXISTS { (e)-[:RELATES_TO]-() } AND NOT EXISTS { (e)<-[:REFERS_TO]-() }
REMOVE e.alias_keys
WITH e, id
{{link_aliases}}
DETACH DELETE e
RETURN id
