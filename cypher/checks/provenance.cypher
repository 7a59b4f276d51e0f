// Provenance: whatever a memory, a message or an entity names exists and belongs to the same user.

// name: sources_without_message(tenant, limit)
// A memory rests on a message that does not exist.
// Fix: Restore a backup, or delete the memory with `hard: true`.
MATCH ()-[r:RELATES_TO]->()
UNWIND r.episodes AS uuid
WITH r, uuid
WHERE NOT EXISTS { MATCH (m:Episodic {uuid: uuid}) WHERE m.group_id = r.group_id }
  AND NOT EXISTS {
    MATCH (m:ArchivedEpisode {group_id: r.group_id}) WHERE m.message_id IN r.message_ids AND m.uuid = uuid
  }
WITH r.group_id AS group_id, r.memory_id AS id
{{violation}}

// name: messages_with_lost_facts(tenant, limit)
// A message lists a version of a memory that does not exist.
// Fix: Export the user, forget them and import the export.
MATCH (m:Episodic)
UNWIND m.entity_edges AS uuid
WITH m, uuid WHERE NOT EXISTS { MATCH ()-[r:RELATES_TO {uuid: uuid}]->() WHERE r.group_id = m.group_id }
WITH m.group_id AS group_id, m.message_id AS id
{{violation}}

// name: lost_memories(tenant, limit)
// A memory names another that does not exist as what it superseded or contests, what superseded it, or as related.
// Fix: Restore a backup, or export the user, forget them and import the export.
MATCH ()-[r:RELATES_TO]->()
UNWIND coalesce(r.supersedes, []) + coalesce(r.associations, []) + coalesce(r.contests, []) + [id IN [r.superseded_by] WHERE id IS NOT NULL] AS other
WITH r, other WHERE NOT EXISTS { MATCH ()-[:RELATES_TO {group_id: r.group_id, memory_id: other}]->() }
WITH r.group_id AS group_id, r.memory_id AS id
{{violation}}

// name: lost_entities(tenant, limit)
// A memory refers to an entity that does not exist.
// Fix: Restore a backup, or delete the memory with `hard: true`.
MATCH ()-[r:RELATES_TO]->()
UNWIND r.entity_ids AS uuid
WITH r, uuid WHERE NOT EXISTS { MATCH (e:Entity {uuid: uuid}) WHERE e.group_id = r.group_id }
WITH r.group_id AS group_id, r.memory_id AS id
{{violation}}

// name: missing_references(tenant, limit)
// A memory that refers to an entity is not found by it.
// Fix: Export the user, forget them and import the export.
MATCH (s)-[r:RELATES_TO]->(o)
UNWIND r.entity_ids AS uuid
WITH s, r, o, uuid WHERE NOT uuid IN [s.uuid, o.uuid]
MATCH (e:Entity {uuid: uuid}) WHERE e.group_id = r.group_id
  AND NOT EXISTS { MATCH (e)<-[:REFERS_TO {group_id: r.group_id, memory_id: r.memory_id}]-() }
WITH r.group_id AS group_id, r.memory_id AS id
{{violation}}

// name: references_without_memory(tenant, limit)
// An entity is referred to by a memory that does not exist.
// Fix: Export the user, forget them and import the export.
MATCH ()-[m:REFERS_TO]->(e)
WHERE NOT EXISTS { MATCH ()-[:RELATES_TO {group_id: m.group_id, memory_id: m.memory_id}]->() }
WITH m.group_id AS group_id, e.uuid AS id
{{violation}}

// name: wrong_aliases(tenant, limit)
// The aliases that an entity is found by are not those that it lists.
// Fix: Export the user, forget them and import the export.
MATCH (e:Entity)
WHERE any(key IN e.alias_keys WHERE
    NOT EXISTS { MATCH (a:EntityAlias {group_id: e.group_id, key: key})-[:ALIAS_OF]->(e) })
  OR EXISTS { MATCH (a:EntityAlias)-[:ALIAS_OF]->(e) WHERE NOT a.key IN coalesce(e.alias_keys, []) }
WITH e.group_id AS group_id, e.uuid AS id
{{violation}}

// name: crossings(tenant, limit)
// A relationship joins data of two users.
// Fix: Report it: no request may do this. Restore a backup.
MATCH (a)-[r]->(b)
WHERE a.group_id <> b.group_id OR r.group_id <> a.group_id
WITH a.group_id AS group_id, coalesce(r.uuid, r.memory_id, elementId(r)) AS id
{{violation}}
