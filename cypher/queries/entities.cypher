// Entities: the nodes that facts lie between.

// name: find_by_keys(group_ids, keys)
// Find entities by the keys of their names or aliases.
MATCH (e:Entity) WHERE e.group_id IN $group_ids
  AND (e.name_key IN $keys OR any(key IN e.alias_keys WHERE key IN $keys))
RETURN e {.*, name_embedding: null} AS entity

// name: create_entities(entities)
// Create entities; the type is also a label. One of a name that is taken stays as it is.
UNWIND $entities AS properties
MERGE (e:Entity {group_id: properties.group_id, name_key: properties.name_key})
ON CREATE SET e = properties
SET e:$(properties.type)
RETURN e {.*, name_embedding: null} AS entity

// name: set_type(group_id, entity_id, type, now)
// Give an entity of unknown type the type that was learned.
MATCH (e:Entity {uuid: $entity_id}) WHERE e.group_id = $group_id
REMOVE e:Thing
SET e.type = $type, e.labels = ['Entity', $type], e:$($type), e.updated_at = $now
RETURN e {.*, name_embedding: null} AS entity

// name: add_aliases(group_id, entity, names, keys, now)
// Give an entity, told by id or name key, further names; one that is an entity's already is left out.
CALL () {
  MATCH (e:Entity {uuid: $entity}) WHERE e.group_id = $group_id RETURN e
  UNION
  MATCH (e:Entity {group_id: $group_id, name_key: $entity}) RETURN e
}
WITH e, [at IN range(0, size($keys) - 1) WHERE NOT $keys[at] IN e.alias_keys + [e.name_key, '']
  AND NOT EXISTS {
    MATCH (other:Entity {group_id: $group_id}) WHERE other.name_key = $keys[at] OR $keys[at] IN other.alias_keys
  }] AS fresh
WHERE fresh <> []
SET e.aliases = e.aliases + [at IN fresh | $names[at]], e.alias_keys = e.alias_keys + [at IN fresh | $keys[at]],
    e.alias_text = trim(e.alias_text + reduce(text = '', at IN fresh | text + ' ' + $names[at])), e.updated_at = $now
RETURN e.uuid AS entity_id, [at IN fresh | $names[at]] AS aliases

// name: fetch_by_ids(group_ids, ids)
// Fetch entities by id.
UNWIND $ids AS id
MATCH (e:Entity {uuid: id}) WHERE e.group_id IN $group_ids
RETURN e {.uuid, .name, .type} AS entity

// name: get_with_memory_count(group_ids, entity_id)
// Fetch one entity with how many of its facts are believed.
MATCH (e:Entity {uuid: $entity_id}) WHERE e.group_id IN $group_ids
RETURN e {.*, name_embedding: null} AS entity,
       COUNT { (e)-[r:RELATES_TO]-() WHERE r.expired_at IS NULL } AS memory_count

// name: list_page(group_ids, text, type, after_key, after_id, limit)
// List entities by name, one page.
MATCH (e:Entity) WHERE e.group_id IN $group_ids
  AND ($text IS NULL OR e.name_key CONTAINS $text OR any(key IN e.alias_keys WHERE key CONTAINS $text))
  AND ($type IS NULL OR e.type = $type)
  AND ($after_key IS NULL OR e.name_key > $after_key OR e.name_key = $after_key AND e.uuid > $after_id)
WITH e ORDER BY e.name_key, e.uuid LIMIT $limit
RETURN e {.*, name_embedding: null} AS entity,
       COUNT { (e)-[r:RELATES_TO]-() WHERE r.expired_at IS NULL } AS memory_count

// name: list_facts(group_ids, entity_id, valid_at, known_at, any_validity, limit)
// Fetch the facts at an entity's edges and those that mention it, as known and valid at two times.
CALL () {
  MATCH (:Entity {uuid: $entity_id})-[r:RELATES_TO]-() RETURN r
  UNION
  MATCH (e:Entity {uuid: $entity_id}) UNWIND e.mentioned_in AS id
  MATCH ()-[r:RELATES_TO {group_id: e.group_id, memory_id: id}]->() RETURN r
}
WITH DISTINCT r WHERE r.group_id IN $group_ids
  AND r.known_from <= $known_at AND r.known_to > $known_at
  AND ($any_validity OR r.valid_from <= $valid_at AND r.valid_to > $valid_at)
WITH r ORDER BY r.importance DESC, r.known_from DESC LIMIT $limit
RETURN {{fact_version}}

// name: add_mentions(group_id, mentioned)
// Remember on entities which memories mention them beside subject and object.
{{add_mentions}}

// name: list_ids(group_id)
// List the ids of a user's entities.
MATCH (e:Entity {group_id: $group_id}) RETURN e.uuid AS id ORDER BY id
