// Which memories each context held, and how the answer that it led to was rated.

// name: save(group_id, group_ids, rows, max_uses)
// Store contexts with those of their memories that still exist, and delete the oldest above a number.
CALL () {
  UNWIND $rows AS row
  WITH row, [memory_id IN row.memory_ids WHERE EXISTS {
    UNWIND $group_ids AS group_id
    MATCH ()-[r:RELATES_TO {group_id: group_id, memory_id: memory_id}]->()
  }] AS memory_ids
  WHERE memory_ids <> []
  MERGE (c:ContextUse {group_id: $group_id, uuid: row.uuid})
  ON CREATE SET c.session_id = row.session_id, c.memory_ids = memory_ids, c.created_at = row.created_at,
                c.expires_at = row.expires_at
}
CALL () {
  MATCH (c:ContextUse {group_id: $group_id})
  WITH c ORDER BY c.created_at DESC, c.uuid SKIP $max_uses
  DELETE c
}

// name: find(group_id, context_id, now)
// Find a context that has not expired.
MATCH (c:ContextUse {group_id: $group_id, uuid: $context_id}) WHERE c.expires_at > $now
RETURN c.memory_ids AS memory_ids, c.score AS score, coalesce(c.credited, false) AS credited,
       coalesce(c.rating_source_kind, 'user') AS rating_source_kind

// name: rate(group_id, context_id, score, credited, rating_source_kind, now)
// Store the rating of a context by a source, and whether its memories were credited with it.
MATCH (c:ContextUse {group_id: $group_id, uuid: $context_id})
SET c.score = $score, c.credited = $credited, c.rating_source_kind = $rating_source_kind, c.rated_at = $now

// name: list_of_memory(group_id, memory_id, now, limit)
// List the contexts that held a memory, the latest first.
MATCH (c:ContextUse {group_id: $group_id}) WHERE $memory_id IN c.memory_ids AND c.expires_at > $now
RETURN c {.uuid, .session_id, .created_at, .score, .rated_at} AS use ORDER BY c.created_at DESC, c.uuid LIMIT $limit

// name: delete_expired(group_id, now)
// Delete the contexts of a user that have expired, and return how many.
MATCH (c:ContextUse {group_id: $group_id}) WHERE c.expires_at <= $now
DELETE c
RETURN count(c) AS deleted

// name: erase_memory(group_id, memory_id)
// Remove a memory from the contexts that held it, and delete those that held no other.
MATCH (c:ContextUse {group_id: $group_id}) WHERE $memory_id IN c.memory_ids
SET c.memory_ids = [id IN c.memory_ids WHERE id <> $memory_id]
WITH c WHERE c.memory_ids = []
DELETE c
