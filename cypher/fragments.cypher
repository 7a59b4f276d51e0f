// Parts of queries that several of them share. A query, or a later fragment, includes one as `{{name}}`.
// Queries return times as microseconds since 1970, null where open: the driver converts Neo4j's datetimes slowly.

// fragment: await_fulltext
// Full-text indexes are updated shortly after a write: wait until they contain everything written before this query.
CALL db.index.fulltext.awaitEventuallyConsistentIndexRefresh()

// fragment: text_of_others
// The kinds of sources whose text strangers may have written.
['document', 'tool', 'web']

// fragment: is_of_user
// True for a message `m` of the role user whose text is the user's: no key of others sent it, and it names no origin.
m.role = 'user' AND NOT coalesce(m.sent_as IN {{text_of_others}}, false)
  AND NOT coalesce(m.metadata CONTAINS '"web":' OR m.metadata CONTAINS '"document":', false)

// fragment: session_said_at
// When the latest message of the session `s` was said; without messages, when the session changed.
coalesce(head(COLLECT {
  MATCH (m:Episodic {group_id: s.group_id, session_id: s.session_id})
  RETURN m.valid_at ORDER BY m.valid_at DESC LIMIT 1
}), s.updated_at)

// fragment: as_of_params
// The bounds of both time axes; they arrive as [seconds since 1970, microseconds], which the driver sends faster.
WITH datetime({epochSeconds: $valid_at[0], microsecond: $valid_at[1]}) AS valid_at,
     datetime({epochSeconds: $valid_after[0], microsecond: $valid_after[1]}) AS valid_after,
     datetime({epochSeconds: $known_at[0], microsecond: $known_at[1]}) AS known_at

// fragment: as_of_filter
// True for a version `r` that the user can read, that was believed at `known_at` and that was valid at `valid_at`.
r.group_id IN $group_ids AND r.known_from <= known_at AND r.known_to > known_at
  AND r.valid_from <= valid_at AND r.valid_to >= valid_after

// fragment: readable_filter
// True for a version `r` as `as_of_filter` says, and with `$include_contested` for a contested one, by its own ends; CASE is planned faster than OR.
r.group_id IN $group_ids AND r.known_from <= known_at AND r.valid_from <= valid_at
  AND (r.known_to > known_at AND r.valid_to >= valid_after OR CASE WHEN $include_contested THEN
         r.status = 'contested' AND (r.expired_at IS NULL OR r.expired_at > known_at)
         AND (r.invalid_at IS NULL OR r.invalid_at >= valid_after) AND (r.expires_at IS NULL OR r.expires_at >= valid_after)
       ELSE false END)

// fragment: is_quotable
// True for a message `m` without a secret or anything caught, of which no memory is deleted or superseded as of two times.
m.redacted IS NULL AND m.caught IS NULL AND NOT EXISTS {
  UNWIND m.entity_edges AS uuid
  MATCH ()-[stated:RELATES_TO {uuid: uuid}]->() WHERE stated.group_id = m.group_id AND stated.known_from <= known_at
    AND NOT EXISTS {
      MATCH ()-[r:RELATES_TO {group_id: m.group_id, memory_id: stated.memory_id}]->()
      WHERE r.known_from <= known_at AND r.known_to > known_at AND (r.superseded_by IS NULL OR r.retired OR r.valid_to > valid_at)
    }
}

// fragment: folded_key
// The `key` of a name without its accents, as `fold_accents` returns it.
CASE WHEN key =~ '[ -~]*' THEN key
     ELSE normalize(reduce(text = normalize(key, NFKD), pair IN $foldings | replace(text, pair[0], pair[1])), NFC) END

// fragment: entity_ids
// The ids of the entities that a version `r` refers to: they are stored where it mentions others than its subject and object.
coalesce(r.entity_ids, CASE WHEN startNode(r) = endNode(r) THEN [startNode(r).uuid] ELSE [startNode(r).uuid, endNode(r).uuid] END)

// fragment: is_statement
// True for a version `r` of a memory that states something: a profile only says what others state.
r.type <> 'profile'

// fragment: matches_filters
// True for a version `r` whose attributes match the filters; null and empty lists filter nothing, but a profile is found only by its type. One parameter holds all: Neo4j plans a query for each combination of the types of its parameters, and null is a type.
($filters.types IS NULL AND {{is_statement}} OR r.type IN $filters.types
    OR toLower(replace(replace(r.subtype, '-', '_'), ' ', '_')) IN $filters.types)
  AND ($filters.subtype IS NULL OR toLower(replace(replace(coalesce(r.subtype, r.type), '-', '_'), ' ', '_')) = $filters.subtype)
  AND ($filters.tags_any = [] OR any(tag IN $filters.tags_any WHERE tag IN coalesce(r.tags, [])))
  AND all(tag IN $filters.tags_all WHERE tag IN coalesce(r.tags, []))
  AND none(tag IN $filters.tags_none WHERE tag IN coalesce(r.tags, []))
  AND ($filters.domain IS NULL OR r.domain = $filters.domain)
  AND ($filters.scope IS NULL OR r.scope = $filters.scope)
  AND ($filters.entity_ids IS NULL OR any(id IN $filters.entity_ids WHERE id IN {{entity_ids}}))
  AND ($filters.min_confidence IS NULL OR r.confidence >= $filters.min_confidence)
  AND ($filters.min_importance IS NULL OR r.importance >= $filters.min_importance)
  AND ($filters.created_after IS NULL OR r.first_created_at >= $filters.created_after)
  AND ($filters.created_before IS NULL OR r.first_created_at < $filters.created_before)
  AND ($filters.source_kind IS NULL OR r.source_kind = $filters.source_kind)
  AND ($filters.trust_kinds IS NULL OR coalesce(r.trusted_as, r.source_kind) IN $filters.trust_kinds)
  AND ($filters.speaker IS NULL OR r.speaker = $filters.speaker)
  AND ($filters.agent IS NULL OR r.actor = $filters.agent)
  AND ($filters.session_id IS NULL OR r.session_id = $filters.session_id)
  AND all(pattern IN $filters.metadata WHERE r.metadata =~ pattern)

// fragment: relation_of_person
// The fact that says best who or what `e` is: one that names a relationship, then one with the user, then the oldest.
CASE WHEN NOT e.type IN ['Person', 'Animal', 'Organization'] OR coalesce(e.is_user, false) THEN null ELSE head(COLLECT {
  MATCH (e)-[about:RELATES_TO]-(other:Entity)
  WHERE about.expired_at IS NULL AND about.valid_from < about.valid_to AND about.type <> 'profile'
  RETURN about.fact
  ORDER BY about.name ENDS WITH '_OF' OR about.name IN ['MARRIED_TO', 'IN_RELATIONSHIP_WITH', 'REPORTS_TO', 'LIVES_WITH'] DESC,
    coalesce(other.is_user, false) DESC, about.first_created_at, about.fact
  LIMIT 1
}) END

// fragment: added_topic_tags
// The topic tags of a session `s` with the new ones, at most as many as a caller may give.
nullIf((coalesce(s.topic_tags, []) + [tag IN $tags WHERE NOT tag IN coalesce(s.topic_tags, [])])[..50], [])

// fragment: item_columns
// A context item `c` and its times.
[c {.*, expires_at: null, created_at: null}, [at IN [c.expires_at, c.created_at] | at.epochSeconds * 1000000 + at.microsecond]]

// fragment: active_items
// The context items of the user, or those that count in one session, that have not expired, the latest first.
MATCH (c:ContextItem) WHERE c.group_id = $group_id AND c.expires_at > $now
  AND ($session_id IS NULL OR c.session_id IN [$session_id, ''])
WITH c ORDER BY c.created_at DESC, c.relevance_score DESC, c.item_key
RETURN collect({{item_columns}}) AS items

// fragment: learned_preferences
// The learned preferences of the user, the most confident first.
MATCH (p:LearnedPreference) WHERE p.group_id = $group_id
WITH p ORDER BY p.confidence_score DESC, p.frequency DESC, p.preference_type, p.preference_key
RETURN collect([p {.*, last_observed: null, created_at: null, updated_at: null},
                [at IN [p.last_observed, p.created_at, p.updated_at] | at.epochSeconds * 1000000 + at.microsecond]]) AS preferences

// fragment: learned_intents
// The learned intents of the user, the best understood first.
MATCH (i:LearnedIntent) WHERE i.group_id = $group_id
WITH i ORDER BY i.confidence_score DESC, i.intent LIMIT 200
RETURN collect([i {.intent, .confidence_score, .positive, .negative, successful_queries: coalesce(i.successful_queries, [])},
                [at IN [i.created_at, i.updated_at] | at.epochSeconds * 1000000 + at.microsecond]]) AS intents

// fragment: active_patterns
// The behaviour patterns that the user shows now, the most confident first.
MATCH (p:BehaviorPattern) WHERE p.group_id = $group_id AND p.is_active
WITH p ORDER BY p.confidence_score DESC, p.pattern_type, p.pattern_key
RETURN collect([p {.*, first_detected: null, last_detected: null},
                [at IN [p.first_detected, p.last_detected] | at.epochSeconds * 1000000 + at.microsecond]]) AS patterns

// fragment: fact_times
// The times of a version `r`, in the order of `TIME_FIELDS`.
[at IN [r.created_at, r.first_created_at, r.updated_at, r.last_accessed_at, r.valid_at, r.invalid_at, r.claimed_invalid_at,
        r.expired_at, r.expires_at] | at.epochSeconds * 1000000 + at.microsecond]

// fragment: retrieval_state
// What retrievals have changed of a version `r`; its times are when it was last read and when the memory was first known.
[r.memory_id, r.version, r.strength, r.decay_rate, r.confidence, r.access_count,
 [at IN [r.last_accessed_at, r.first_created_at] | at.epochSeconds * 1000000 + at.microsecond]]

// fragment: fact_version
// A version `r` with all its properties but the vector and the shadow bounds.
r {.*, fact_embedding: null, next_vector: null, revision: null, valid_from: null, valid_to: null, known_from: null, known_to: null,
   profile_of: null, folded_text: null, created_at: null, first_created_at: null, updated_at: null, last_accessed_at: null, valid_at: null, invalid_at: null,
   claimed_invalid_at: null, expired_at: null, expires_at: null} AS fact,
{{fact_times}} AS times, startNode(r).uuid AS subject_id, endNode(r).uuid AS object_id

// fragment: question_similarity
// The cosine of the angle between a version `r` and the vector of a question, null without one.
CASE WHEN $vector IS NULL THEN null ELSE 2 * vector.similarity.cosine(r.fact_embedding, $vector) - 1 END

// fragment: message_key
// The key of a message `m`: its id, in a space with the group before it, because ids are unique in a group only.
CASE WHEN split(m.group_id, ':')[1] STARTS WITH ' ' THEN m.group_id + '\u0000' + m.message_id ELSE m.message_id END

// fragment: keys_of_messages
// The keys of the messages that a version `r` was taken from.
CASE WHEN split(r.group_id, ':')[1] STARTS WITH ' ' THEN [id IN coalesce(r.message_ids, []) | r.group_id + '\u0000' + id]
     ELSE coalesce(r.message_ids, []) END

// fragment: pack_fact_vector
// Store the vector of a version `r` with 4 bytes a number: a list of numbers that comes as a parameter takes 8.
CALL (r) {
  WITH r WHERE r.fact_embedding IS NOT NULL
  CALL db.create.setRelationshipVectorProperty(r, 'fact_embedding', r.fact_embedding)
}

// fragment: pack_entity_vector
// Store the vector of an entity `e` with 4 bytes a number.
CALL (e) {
  WITH e WHERE e.name_embedding IS NOT NULL
  CALL db.create.setNodeVectorProperty(e, 'name_embedding', e.name_embedding)
}

// fragment: pack_message_vector
// Store the vector of a message `m` with 4 bytes a number.
CALL (m) {
  WITH m WHERE m.content_embedding IS NOT NULL
  CALL db.create.setNodeVectorProperty(m, 'content_embedding', m.content_embedding)
}

// fragment: fact_candidate
// What ranking needs of a version `r` that a channel found with a `score`, as `search.source` reads it.
[score, similarity, r.uuid, r.memory_id, r.fact, left(coalesce(r.search_text, ''), 1500), r.type, coalesce(r.tags, []),
 {{keys_of_messages}}, {{entity_ids}}, coalesce(r.trusted_as, r.source_kind), r.importance, r.strength, r.decay_rate,
 coalesce(r.last_accessed_at, r.first_created_at).epochMillis, r.valid_from.epochMillis, r.valid_to.epochMillis]

// fragment: memory_properties
// The properties, the times, the subject and the object of what callers see of a version `r`.
r {.memory_id, .uuid, .version, .fact, .name, .content_data, .type, .subtype, .scope, .status, .domain, .tags, .metadata, .confidence,
   .importance, .strength, .decay_rate, .access_count, .immutable, .single_valued, .retired, .content_hash,
   .source_kind, .trusted_as, .source_quote, .speaker, .actor, .session_id, .message_ids, .entity_ids, .supersedes, .superseded_by, .contests,
   .associations, .derived_from, .end_status, .group_id},
{{fact_times}}, startNode(r).uuid, endNode(r).uuid

// fragment: session_columns
// A session `s` and its times.
[s {.*, created_at: null, updated_at: null, ended_at: null},
 [at IN [s.created_at, s.updated_at, s.ended_at] | at.epochSeconds * 1000000 + at.microsecond]]

// fragment: memory_columns
// What callers see of a version `r`: its properties, its times, its subject and object, and the entities it refers to.
[{{memory_properties}},
 [n IN [startNode(r), endNode(r)] | [n.uuid, n.name, n.type]] + COLLECT {
   UNWIND r.entity_ids AS id WITH id WHERE NOT id IN [startNode(r).uuid, endNode(r).uuid]
   MATCH (n:Entity {uuid: id}) RETURN [n.uuid, n.name, n.type]
 }]

// fragment: facts_of_entity
// Every version `r` at the edges of the entity `e` and every version of the memories that refer to it, once.
CALL (e) {
  MATCH (e)-[r:RELATES_TO]-() RETURN r
  UNION
  MATCH (e)<-[reference:REFERS_TO]-()
  MATCH ()-[r:RELATES_TO {group_id: reference.group_id, memory_id: reference.memory_id}]->() RETURN r
}

// fragment: can_be_profiled
// True for a version `r` that a profile may be written from: what holds now, in every conversation and without an expiry.
r.expired_at IS NULL AND r.valid_from <= $now AND r.valid_to > $now AND r.expires_at IS NULL AND NOT r.retired
  AND r.scope IN ['profile', 'domain'] AND r.status IN ['active', 'superseded']
  AND NOT r.type IN ['profile', 'conversation_topic', 'conversation_summary']

// fragment: due_profile
// Keep the entities `e` with enough facts, some of them about it and not about others, whose profile is missing, is derived from what has changed or lacks newer facts, except those that could not be written from these facts.
WHERE COUNT { (e)-[:RELATES_TO]-() } + COUNT { (e)<-[:REFERS_TO]-() } >= $min_facts
CALL (e) {
  {{facts_of_entity}}
  WITH r WHERE {{can_be_profiled}}
  RETURN collect([r.memory_id, r.created_at, r.first_created_at]) AS facts,
         sum(CASE WHEN startNode(r) = e THEN 1 ELSE 0 END) AS own
}
CALL (e) {
  MATCH ()-[r:RELATES_TO {group_id: e.group_id, profile_of: e.uuid}]->()
  WITH r ORDER BY r.created_at DESC, r.version DESC LIMIT 1
  RETURN collect(CASE WHEN r.end_status = 'archived' THEN null ELSE r END) AS profiles
}
WITH e, facts, own, head(profiles) AS p
WHERE size(facts) >= $min_facts AND own >= $min_own AND (p IS NULL
    OR any(id IN p.derived_from WHERE NOT any(fact IN facts WHERE fact[0] = id AND fact[1] <= p.created_at))
    OR size([fact IN facts WHERE fact[2] > p.created_at]) >= $min_new)
  AND NOT EXISTS {
    MATCH (run:ConsolidationRun {group_id: e.group_id})
    WHERE e.uuid IN coalesce(run.unprofiled, []) AND all(fact IN facts WHERE fact[1] <= run.profiled_at)
  }

// fragment: entity_node
// An entity `e` without its vector.
e {.*, name_embedding: null, next_vector: null, revision: null}

// fragment: entity_details
// What sources give an entity `e`, and which source gave what.
e {.uuid, .name, .name_key, .type, .aliases, .alias_keys, .summary, .attributes, .detail_sources, .is_user}

// fragment: entity_names
// The names, the type and the attributes of an entity `e`.
e {.uuid, .name, .name_key, .type, .aliases, .alias_keys, .attributes, .detail_sources, .is_user}

// fragment: memory_count
// How many facts at the edges of the entity `e`, or that refer to it, are believed and valid now.
COUNT {
  MATCH (e)-[r:RELATES_TO]-()
  WHERE r.known_to > datetime() AND r.valid_from <= datetime() AND r.valid_to > datetime() AND {{is_statement}}
  RETURN r
  UNION
  MATCH (e)<-[reference:REFERS_TO]-()
  MATCH ()-[r:RELATES_TO {group_id: reference.group_id, memory_id: reference.memory_id}]->()
  WHERE r.known_to > datetime() AND r.valid_from <= datetime() AND r.valid_to > datetime() AND {{is_statement}}
  RETURN r
}

// fragment: entity_columns
// An entity `e`, its times and its memory count.
e {.*, name_embedding: null, next_vector: null, revision: null, created_at: null, updated_at: null},
[at IN [e.created_at, e.updated_at] | at.epochSeconds * 1000000 + at.microsecond], {{memory_count}}

// fragment: message_columns
// What callers see of a message `m`, and its times.
[m {.*, content_embedding: null, next_vector: null, revision: null, redacted: null, folded_text: null, entity_edges: null, valid_at: null, created_at: null, extracted_at: null},
 [at IN [m.valid_at, m.created_at, m.extracted_at] | at.epochSeconds * 1000000 + at.microsecond]]

// fragment: resident_fact
// What a copy in memory holds of a version `r`: what callers see, the text and the bounds that searches read, its vector.
[[{{memory_properties}}], r.search_text,
 [at IN [r.valid_from, r.valid_to, r.known_from, r.known_to] | at.epochSeconds * 1000000 + at.microsecond], r.fact_embedding]

// fragment: named_entity
// An entity `e` with its names, and whether it stands for the user.
[e.uuid, e.name, e.type, coalesce(e.aliases, []), coalesce(e.is_user, false)]

// fragment: resident_message
// What a copy in memory holds of a message `m`.
[{{message_columns}}, m.content_embedding]

// fragment: entities_with_keys
// The entities `e` of groups that have one of the keys as the key of their name or of an alias, the oldest first.
UNWIND $group_ids AS group_id
UNWIND $keys AS key
CALL (group_id, key) {
  MATCH (e:Entity {group_id: group_id, name_key: key}) RETURN e
  UNION
  MATCH (:EntityAlias {group_id: group_id, key: key})-[:ALIAS_OF]->(e:Entity) RETURN e
}
WITH DISTINCT e ORDER BY e.created_at, e.uuid

// fragment: link_aliases
// Link the entity `e` to the node of each of its alias keys, and to no other; a node that no entity has left is deleted.
CALL (e) {
  MATCH (a:EntityAlias)-[old:ALIAS_OF]->(e) WHERE NOT a.key IN coalesce(e.alias_keys, [])
  WITH a, old, COUNT { (a)-[:ALIAS_OF]->() } AS entities
  DELETE old
  FOREACH (_ IN CASE WHEN entities = 1 THEN [1] ELSE [] END | DELETE a)
}
CALL (e) {
  UNWIND e.alias_keys AS key
  MERGE (a:EntityAlias {group_id: e.group_id, key: key})
  MERGE (a)-[:ALIAS_OF]->(e)
}

// fragment: rebuild_references
// Make the references of memories those of their versions: from the subject to what is mentioned beside the object.
UNWIND referring AS memory_id
CALL (memory_id) {
  MATCH ()-[old:REFERS_TO {group_id: $group_id, memory_id: memory_id}]->() DELETE old
}
CALL (memory_id) {
  MATCH (s)-[r:RELATES_TO {group_id: $group_id, memory_id: memory_id}]->(o)
  UNWIND r.entity_ids AS id
  MATCH (e:Entity {uuid: id}) WHERE e <> s AND e <> o AND e.group_id = $group_id
  WITH DISTINCT s, e
  CREATE (s)-[:REFERS_TO {group_id: $group_id, memory_id: memory_id}]->(e)
}

// fragment: record
// A node `n` of the user that an export lists under `records`: the labels of `RecordLabel`.
(n:ArchivedEpisode|BehaviorPattern|ContextItem|ContextUse|Episodic|InterestCandidate|LearnedIntent|LearnedPreference|Session|SessionArchive)
WHERE n.group_id = $group_id

// fragment: space_columns
// A space `s` and its members; one that is removed meanwhile has no role.
s {.group_id, .title, .about, .source_kind, .created_at, .updated_at} AS space,
COLLECT {
  MATCH (m:SpaceMember {group_id: s.group_id})
  WITH m {.user, .key, .role} AS member WHERE member.role IS NOT NULL
  RETURN [member.user, member.key, member.role]
} AS members

// fragment: write_version
// The write version of the users of `$group_ids`: the life and the write counter of each. No two lives of a user share one.
MATCH (u:User) WHERE u.group_id IN $group_ids
WITH u ORDER BY u.group_id
RETURN reduce(version = '', user IN collect(u) |
  version + coalesce(user.life, user.group_id) + ':' + toString(user.write_version) + ';') AS write_version

// fragment: elements_of_user
// Every fact and node of a user but the user's own node: copies first, and messages before what many of them link to.
MATCH (n:IdempotentRequest) WHERE n.owner_group = $group_id RETURN n AS element, 'IdempotentRequest' AS kind
UNION ALL
MATCH (n:IdempotentRequest) WHERE n.owner_group = $shared_group AND n.status IS NOT NULL AND n.contains_user_text
RETURN n AS element, 'IdempotentRequest' AS kind
UNION ALL
MATCH (n:Change {group_id: $group_id}) RETURN n AS element, 'Change' AS kind
UNION ALL
MATCH (n:ConsolidationRun {group_id: $group_id}) RETURN n AS element, 'ConsolidationRun' AS kind
UNION ALL
MATCH (n:Extraction {group_id: $group_id}) RETURN n AS element, 'Extraction' AS kind
UNION ALL
MATCH ()-[r:RELATES_TO {group_id: $group_id}]->() RETURN r AS element, 'Fact' AS kind
UNION ALL
MATCH (n:ContextItem {group_id: $group_id}) RETURN n AS element, 'ContextItem' AS kind
UNION ALL
MATCH (n:ContextUse {group_id: $group_id}) RETURN n AS element, 'ContextUse' AS kind
UNION ALL
MATCH (n:Episodic {group_id: $group_id}) RETURN n AS element, 'Episodic' AS kind
UNION ALL
MATCH (n:ArchivedEpisode {group_id: $group_id}) RETURN n AS element, 'ArchivedEpisode' AS kind
UNION ALL
MATCH (n:SessionArchive {group_id: $group_id}) RETURN n AS element, 'SessionArchive' AS kind
UNION ALL
MATCH (n:Session {group_id: $group_id}) RETURN n AS element, 'Session' AS kind
UNION ALL
MATCH (n:EntityAlias {group_id: $group_id}) RETURN n AS element, 'EntityAlias' AS kind
UNION ALL
MATCH (n:Entity {group_id: $group_id}) RETURN n AS element, 'Entity' AS kind
UNION ALL
MATCH (n:InterestCandidate {group_id: $group_id}) RETURN n AS element, 'InterestCandidate' AS kind
UNION ALL
MATCH (n:QuarantinedStatement {group_id: $group_id}) RETURN n AS element, 'QuarantinedStatement' AS kind
UNION ALL
MATCH (n:LearnedPreference {group_id: $group_id}) RETURN n AS element, 'LearnedPreference' AS kind
UNION ALL
MATCH (n:LearnedIntent {group_id: $group_id}) RETURN n AS element, 'LearnedIntent' AS kind
UNION ALL
MATCH (n:BehaviorPattern {group_id: $group_id}) RETURN n AS element, 'BehaviorPattern' AS kind
UNION ALL
MATCH (n:WebhookCursor {group_id: $group_id}) RETURN n AS element, 'WebhookCursor' AS kind
UNION ALL
MATCH (n:SpaceMember {group_id: $group_id}) RETURN n AS element, 'SpaceMember' AS kind
UNION ALL
MATCH (n:SpaceMember {member: $group_id}) RETURN n AS element, 'SpaceMember' AS kind

// fragment: violation
// The rows of a check: what violates an invariant, by its id, and whose it is; of one tenant, or of all.
WITH DISTINCT group_id, id WHERE $tenant IS NULL OR group_id STARTS WITH $tenant + ':'
RETURN group_id, id LIMIT $limit

// fragment: plain_nodes_of_group
// Every node of a group that has no vector.
MATCH (n:User {group_id: $group_id}) RETURN n
UNION ALL
MATCH (n:EntityAlias {group_id: $group_id}) RETURN n
UNION ALL
MATCH (n:ArchivedEpisode {group_id: $group_id}) RETURN n
UNION ALL
MATCH (n:Session {group_id: $group_id}) RETURN n
UNION ALL
MATCH (n:SessionArchive {group_id: $group_id}) RETURN n
UNION ALL
MATCH (n:Extraction {group_id: $group_id}) RETURN n
UNION ALL
MATCH (n:InterestCandidate {group_id: $group_id}) RETURN n
UNION ALL
MATCH (n:Change {group_id: $group_id}) RETURN n
UNION ALL
MATCH (n:ContextItem {group_id: $group_id}) RETURN n
UNION ALL
MATCH (n:ContextUse {group_id: $group_id}) RETURN n
UNION ALL
MATCH (n:LearnedPreference {group_id: $group_id}) RETURN n
UNION ALL
MATCH (n:LearnedIntent {group_id: $group_id}) RETURN n
UNION ALL
MATCH (n:BehaviorPattern {group_id: $group_id}) RETURN n

// fragment: location
// The graph in which a tenant lives, as `GraphLocation` takes it.
p {.tenant, .graph, .state, .target, .job_id, .attempt, .report}

// fragment: change_locations
// Change the version of the table of locations, which every process compares.
MERGE (t:PlacementTable {name: 'tenants'})
SET t.version = coalesce(t.version, 0) + 1

// fragment: nodes_of_tenant
// Every node that belongs to a tenant as a whole.
MATCH (n:ConsolidationRun) WHERE n.tenant = $tenant AND n.created_at IS NOT NULL RETURN n
UNION ALL
MATCH (n:QuarantinedStatement {tenant: $tenant}) RETURN n
UNION ALL
MATCH (n:Webhook {tenant: $tenant}) RETURN n
UNION ALL
MATCH (n:TenantTypes {tenant: $tenant}) RETURN n
UNION ALL
MATCH (n:TenantTrust {tenant: $tenant}) RETURN n
UNION ALL
MATCH (n:TenantInstructions {tenant: $tenant}) RETURN n
UNION ALL
MATCH (n:IdempotentRequest {tenant: $tenant}) RETURN n
UNION ALL
MATCH (n:SpaceMember) WHERE n.group_id STARTS WITH $prefix RETURN n
UNION ALL
MATCH (n:WebhookCursor) WHERE n.group_id STARTS WITH $prefix RETURN n
UNION ALL
MATCH (n:Erasure) WHERE n.group_id STARTS WITH $prefix RETURN n

// fragment: link_columns
// A relationship `r` from `n` to `m`, and by what `m` is known in every graph if it is of another group.
[elementId(r), type(r), elementId(n), elementId(m),
 CASE WHEN m:Change THEN [m.run_id, m.kind, m.element_id] ELSE [m.uuid] END, properties(r)]
