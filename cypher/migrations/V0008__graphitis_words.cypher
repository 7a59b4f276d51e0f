// Full text that only Graphiti's own search asks is brought up to date in the background: no write waits for it.
DROP INDEX edge_name_and_fact IF EXISTS;
CREATE FULLTEXT INDEX edge_name_and_fact IF NOT EXISTS FOR ()-[e:RELATES_TO]-() ON EACH [e.name, e.fact, e.group_id, e.group_key, e.search_text]
OPTIONS {indexConfig: {`fulltext.eventually_consistent`: true}};
DROP INDEX episode_content IF EXISTS;
CREATE FULLTEXT INDEX episode_content IF NOT EXISTS FOR (e:Episodic) ON EACH [e.content, e.source, e.source_description, e.group_id, e.group_key]
OPTIONS {indexConfig: {`fulltext.eventually_consistent`: true}};
