// Entities: the nodes that facts connect.

// name: find_by_keys(group_ids, keys)
// Find entities by the keys of their names or aliases.
{{entities_with_keys}}
RETURN {{entity_names}} AS entity

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

// name: set_type(group_id, entity_id, type, now)
// Set the type of an entity whose type was unknown.
MATCH (u:User {group_id: $group_id})
MATCH (e:Entity {uuid: $entity_id}) WHERE e.group_id = $group_id
REMOVE e:Thing
SET e.type = $type, e.labels = ['Entity', $type], e:$($type), e.updated_at = $now, e.revision = u.revision
RETURN {{entity_names}} AS entity

// name: add_aliases(group_id, entity, names, keys, kind, shared, now)
// Add names that a source gives to an entity, given by id or name key, and return those added; unless `shared`, a name that
// another entity has already is left out. A name of another source that the user gives too is the user's.
CALL () {
  MATCH (e:Entity {uuid: $entity}) WHERE e.group_id = $group_id RETURN e
  UNION
  MATCH (e:Entity {group_id: $group_id, name_key: $entity}) RETURN e
}
SET e.detail_sources = CASE WHEN $kind = 'user' AND e.detail_sources IS NOT NULL THEN
    nullIf([one IN e.detail_sources WHERE NOT any(key IN $keys WHERE one ENDS WITH ' alias ' + key)], [])
  ELSE e.detail_sources END
WITH e
UNWIND range(0, size($keys) - 1) AS at
WITH e, at, $keys[at] AS key WHERE NOT key IN coalesce(e.alias_keys, []) + [e.name_key, '']
CALL (key) {
  OPTIONAL MATCH (named:Entity {group_id: $group_id, name_key: key})
  OPTIONAL MATCH (alias:EntityAlias {group_id: $group_id, key: key})
  RETURN $shared OR named IS NULL AND alias IS NULL AS is_free
}
WITH e, at, is_free ORDER BY at
WHERE is_free
WITH e, collect(at) AS fresh
MATCH (u:User {group_id: $group_id})
SET e.revision = u.revision, e.aliases = coalesce(e.aliases, []) + [at IN fresh | $names[at]],
    e.alias_keys = coalesce(e.alias_keys, []) + [at IN fresh | $keys[at]],
    e.alias_text = trim(e.alias_text + reduce(text = '', at IN fresh | text + ' ' + $names[at])), e.updated_at = $now,
    e.detail_sources = CASE WHEN $kind = 'user' THEN e.detail_sources
      ELSE coalesce(e.detail_sources, []) + [at IN fresh | $kind + ' alias ' + $keys[at]] END
WITH e, fresh
{{link_aliases}}
RETURN e.uuid AS entity_id, [at IN fresh | $names[at]] AS aliases

// name: remove_aliases(group_id, ids, keys, now)
// Take names from entities: another one is called so by a more trusted source.
UNWIND $ids AS id
MATCH (u:User {group_id: $group_id})
MATCH (e:Entity {uuid: id}) WHERE e.group_id = $group_id
WITH u, e, [at IN range(0, size(coalesce(e.alias_keys, [])) - 1) WHERE NOT e.alias_keys[at] IN $keys] AS kept
SET e.alias_text = trim(reduce(text = '', at IN kept | text + ' ' + e.aliases[at])),
    e.detail_sources = nullIf([one IN e.detail_sources WHERE NOT any(key IN $keys WHERE one ENDS WITH ' alias ' + key)], []),
    e.updated_at = $now, e.revision = u.revision
SET e.aliases = nullIf([at IN kept | e.aliases[at]], []), e.alias_keys = nullIf([at IN kept | e.alias_keys[at]], [])
WITH e
{{link_aliases}}
RETURN count(*) AS changed

// name: fetch_by_ids(group_ids, ids)
// Fetch entities by id.
UNWIND $ids AS id
MATCH (e:Entity {uuid: id}) WHERE e.group_id IN $group_ids
RETURN e {.uuid, .name, .type} AS entity

// name: get_with_memory_count(group_ids, entity_id)
// Fetch one entity with its memory count.
MATCH (e:Entity {uuid: $entity_id}) WHERE e.group_id IN $group_ids
RETURN {{entity_node}} AS entity, {{memory_count}} AS memory_count

// name: list_page(group_ids, text, type, after_key, after_id, limit)
// List one page of entities by name.
MATCH (e:Entity) WHERE e.group_id IN $group_ids
  AND ($text IS NULL OR e.name_key CONTAINS $text OR any(key IN e.alias_keys WHERE key CONTAINS $text))
  AND ($type IS NULL OR e.type = $type)
  AND ($after_key IS NULL OR e.name_key > $after_key OR e.name_key = $after_key AND e.uuid > $after_id)
WITH e ORDER BY e.name_key, e.uuid LIMIT $limit
RETURN {{entity_node}} AS entity, {{memory_count}} AS memory_count

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

// name: set_attributes(group_id, entity_id, attributes, detail_sources, now)
// Set the attributes of an entity, and which of its details are not of the user.
MATCH (u:User {group_id: $group_id})
MATCH (e:Entity {uuid: $entity_id}) WHERE e.group_id = $group_id
SET e.attributes = $attributes, e.detail_sources = $detail_sources, e.updated_at = $now, e.revision = u.revision
