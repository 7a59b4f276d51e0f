// Full text is brought up to date right behind a write, so that no write waits for it; whoever asks it waits instead.
DROP INDEX graphmem_fact_words IF EXISTS;
CREATE FULLTEXT INDEX graphmem_fact_words IF NOT EXISTS FOR ()-[e:RELATES_TO]-() ON EACH [e.fact, e.search_text, e.group_key]
OPTIONS {indexConfig: {`fulltext.analyzer`: 'english', `fulltext.eventually_consistent`: true}};
DROP INDEX graphmem_message_words IF EXISTS;
CREATE FULLTEXT INDEX graphmem_message_words IF NOT EXISTS FOR (e:Episodic) ON EACH [e.content, e.speaker, e.group_key]
OPTIONS {indexConfig: {`fulltext.analyzer`: 'english', `fulltext.eventually_consistent`: true}};
DROP INDEX node_name_and_summary IF EXISTS;
CREATE FULLTEXT INDEX node_name_and_summary IF NOT EXISTS FOR (n:Entity) ON EACH [n.name, n.summary, n.group_id, n.group_key, n.alias_text]
OPTIONS {indexConfig: {`fulltext.eventually_consistent`: true}};
