// What a copy of a group in memory consists of. A small one is loaded at once, another one by ids, some at a time; then by
// revision.

// name: load_first(group_id, limit)
// Fetch up to `limit` elements of each kind of a group.
CALL () {
  MATCH ()-[r:RELATES_TO {group_id: $group_id}]->() WITH r LIMIT $limit
  RETURN collect({{resident_fact}}) AS facts
}
CALL () {
  MATCH (e:Entity {group_id: $group_id}) WITH e LIMIT $limit
  RETURN collect({{named_entity}}) AS entities
}
CALL () {
  MATCH (m:Episodic {group_id: $group_id}) WITH m LIMIT $limit
  RETURN collect({{resident_message}}) AS messages
}
RETURN [facts, entities, messages] AS found

// name: list_ids(group_id)
// List the ids of a group's versions of memories, entities and messages.
CALL () { MATCH ()-[r:RELATES_TO {group_id: $group_id}]->() RETURN collect(r.uuid) AS facts }
CALL () { MATCH (e:Entity {group_id: $group_id}) RETURN collect(e.uuid) AS entities }
CALL () { MATCH (m:Episodic {group_id: $group_id}) RETURN collect(m.uuid) AS messages }
RETURN [facts, entities, messages] AS found

// name: load(group_id, facts, entities, messages)
// Fetch elements of a group by their ids.
CALL () {
  UNWIND $facts AS uuid
  MATCH ()-[r:RELATES_TO {uuid: uuid}]->() WHERE r.group_id = $group_id
  RETURN collect({{resident_fact}}) AS facts
}
CALL () {
  UNWIND $entities AS uuid
  MATCH (e:Entity {uuid: uuid}) WHERE e.group_id = $group_id
  RETURN collect({{named_entity}}) AS entities
}
CALL () {
  UNWIND $messages AS uuid
  MATCH (m:Episodic {uuid: uuid}) WHERE m.group_id = $group_id
  RETURN collect({{resident_message}}) AS messages
}
RETURN [facts, entities, messages] AS found

// name: load_changes(revisions, limit)
// Fetch up to `limit` elements of each kind that changed in groups after a revision of each, by group.
UNWIND $revisions AS of_group
WITH of_group[0] AS group_id, of_group[1] AS revision
CALL (group_id, revision) {
  MATCH ()-[r:RELATES_TO]->() WHERE r.group_id = group_id AND r.revision > revision
  WITH r LIMIT $limit
  RETURN collect({{resident_fact}}) AS facts
}
CALL (group_id, revision) {
  MATCH (e:Entity) WHERE e.group_id = group_id AND e.revision > revision
  WITH e LIMIT $limit
  RETURN collect({{named_entity}}) AS entities
}
CALL (group_id, revision) {
  MATCH (m:Episodic) WHERE m.group_id = group_id AND m.revision > revision
  WITH m LIMIT $limit
  RETURN collect({{resident_message}}) AS messages
}
RETURN collect([group_id, [facts, entities, messages]]) AS found
