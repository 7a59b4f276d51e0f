// Context: what was just mentioned, what is learned about a user, and the reads that put it together.

CREATE CONSTRAINT graphmem_context_item IF NOT EXISTS FOR (c:ContextItem) REQUIRE (c.group_id, c.session_id, c.item_key) IS UNIQUE;
CREATE INDEX graphmem_context_item_expiry IF NOT EXISTS FOR (c:ContextItem) ON (c.group_id, c.expires_at);

CREATE CONSTRAINT graphmem_preference IF NOT EXISTS FOR (p:LearnedPreference) REQUIRE (p.group_id, p.preference_type, p.preference_key) IS UNIQUE;
CREATE CONSTRAINT graphmem_pattern IF NOT EXISTS FOR (p:BehaviorPattern) REQUIRE (p.group_id, p.pattern_type, p.pattern_key) IS UNIQUE;
CREATE CONSTRAINT graphmem_intent IF NOT EXISTS FOR (i:LearnedIntent) REQUIRE (i.group_id, i.intent) IS UNIQUE;

// The profile by importance, as it is believed now, and what a user said lately.
CREATE INDEX graphmem_fact_scope IF NOT EXISTS FOR ()-[r:RELATES_TO]-() ON (r.group_id, r.scope, r.known_to, r.importance);
CREATE INDEX graphmem_message_said IF NOT EXISTS FOR (m:Episodic) ON (m.group_id, m.role, m.valid_at);
CREATE INDEX graphmem_session_updated IF NOT EXISTS FOR (s:Session) ON (s.group_id, s.updated_at);
