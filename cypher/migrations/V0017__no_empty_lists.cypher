// An empty list is not stored, because it takes 128 bytes, nor are the entities of a fact that are its subject and object.
// Earlier versions do not read the absence of a list as an empty one, so that this is not compatible with them.
MATCH ()-[r:RELATES_TO]->()
WHERE r.tags = [] OR r.message_ids = [] OR r.supersedes = [] OR r.contests = [] OR r.associations = []
  OR r.entity_ids IN [[], [startNode(r).uuid], [startNode(r).uuid, endNode(r).uuid]]
CALL (r) {
  SET r.tags = nullIf(r.tags, []), r.message_ids = nullIf(r.message_ids, []),
      r.supersedes = nullIf(r.supersedes, []), r.contests = nullIf(r.contests, []), r.associations = nullIf(r.associations, []),
      r.entity_ids = CASE
        WHEN r.entity_ids IN [[], [startNode(r).uuid, endNode(r).uuid]] OR startNode(r) = endNode(r) AND r.entity_ids = [startNode(r).uuid]
        THEN null ELSE r.entity_ids END
} IN TRANSACTIONS OF 10000 ROWS;
MATCH (e:Entity) WHERE e.aliases = [] OR e.alias_keys = []
CALL (e) {
  SET e.aliases = nullIf(e.aliases, []), e.alias_keys = nullIf(e.alias_keys, [])
} IN TRANSACTIONS OF 10000 ROWS;
MATCH (m:Episodic) WHERE m.feedback_issues = []
CALL (m) {
  SET m.feedback_issues = null
} IN TRANSACTIONS OF 10000 ROWS;
MATCH (s:Session) WHERE s.intent_sequence = [] OR s.topic_tags = [] OR s.transcript = []
CALL (s) {
  SET s.intent_sequence = nullIf(s.intent_sequence, []), s.topic_tags = nullIf(s.topic_tags, []),
      s.transcript = nullIf(s.transcript, [])
} IN TRANSACTIONS OF 10000 ROWS;
MATCH (i:LearnedIntent) WHERE i.successful_queries = []
SET i.successful_queries = null;
