// Profiles: what is known of an entity in a few sentences, as a memory that is derived from others.

// name: load(group_ids, entity_ids, {{as_of_params}})
// Fetch the profiles of entities as of two times, unless something that one is derived from has changed since or does not hold:
// the versions it was written from were believed when it was, so that later versions tell of a change.
{{as_of_params}}
UNWIND $group_ids AS group_id
UNWIND $entity_ids AS entity_id
MATCH ()-[r:RELATES_TO {group_id: group_id, profile_of: entity_id}]->() WHERE {{as_of_filter}}
WITH r AS p, valid_at, valid_after, known_at
WITH p, COLLECT {
  UNWIND p.derived_from AS id
  MATCH ()-[r:RELATES_TO {group_id: p.group_id, memory_id: id}]->() WHERE {{as_of_filter}} AND r.known_from <= p.known_from
  RETURN r.valid_to
} AS ends
WHERE size(ends) = size(p.derived_from)
WITH p, reduce(first = p.valid_to, end IN ends | CASE WHEN end < first THEN end ELSE first END) AS until
RETURN collect([p {.group_id, .memory_id, .version, .fact, .content_data, .derived_from, entity_id: p.profile_of},
                [at IN [p.known_from, until] | at.epochSeconds * 1000000 + at.microsecond]]) AS found

// name: fetch_latest(group_id, entity_ids)
// Fetch the latest version of the latest profile of each entity, whether it is believed or not.
UNWIND $entity_ids AS entity_id
CALL (entity_id) {
  MATCH ()-[r:RELATES_TO {group_id: $group_id, profile_of: entity_id}]->()
  RETURN r ORDER BY r.created_at DESC, r.version DESC LIMIT 1
}
RETURN {{fact_version}}
