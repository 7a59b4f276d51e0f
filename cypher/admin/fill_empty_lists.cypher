// Lists of an offline import that are empty: the import tool stores nothing for an empty list.
// Required lists are filled where they are absent; lists that may be absent hold U+001F where they are empty.
MATCH ()-[r:RELATES_TO]->()
CALL (r) {
  SET r.tags = coalesce(r.tags, []), r.message_ids = coalesce(r.message_ids, []), r.episodes = coalesce(r.episodes, []),
      r.entity_ids = coalesce(r.entity_ids, []), r.supersedes = coalesce(r.supersedes, []),
      r.contests = coalesce(r.contests, []), r.associations = coalesce(r.associations, [])
} IN TRANSACTIONS OF 10000 ROWS;
MATCH (n:Entity)
CALL (n) {
  SET n.aliases = coalesce(n.aliases, []), n.alias_keys = coalesce(n.alias_keys, [])
} IN TRANSACTIONS OF 10000 ROWS;
MATCH (n:Episodic)
CALL (n) {
  SET n.entity_edges = coalesce(n.entity_edges, []),
      n.feedback_issues = CASE WHEN n.feedback_issues = ['\u001F'] THEN [] ELSE n.feedback_issues END
} IN TRANSACTIONS OF 10000 ROWS;
MATCH (n:Session)
CALL (n) {
  SET n.intent_sequence = coalesce(n.intent_sequence, []), n.topic_tags = coalesce(n.topic_tags, []),
      n.transcript = CASE WHEN n.transcript = ['\u001F'] THEN [] ELSE n.transcript END
} IN TRANSACTIONS OF 10000 ROWS;
MATCH (n:LearnedIntent)
CALL (n) {
  SET n.successful_queries = coalesce(n.successful_queries, [])
} IN TRANSACTIONS OF 10000 ROWS;
MATCH (n:InterestCandidate)
CALL (n) {
  SET n.message_ids = coalesce(n.message_ids, [])
} IN TRANSACTIONS OF 10000 ROWS;
