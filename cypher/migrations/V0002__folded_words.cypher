// Facts and messages are also found by their folded words: without accents, in one Unicode form, and by pairs of letters in scripts
// whose words have no spaces around them.
DROP INDEX graphmem_fact_words IF EXISTS;
CREATE FULLTEXT INDEX graphmem_fact_words IF NOT EXISTS FOR ()-[e:RELATES_TO]-() ON EACH [e.fact, e.search_text, e.folded_text, e.group_key]
OPTIONS {indexConfig: {`fulltext.analyzer`: 'english', `fulltext.eventually_consistent`: true}};
DROP INDEX graphmem_message_words IF EXISTS;
CREATE FULLTEXT INDEX graphmem_message_words IF NOT EXISTS FOR (e:Episodic) ON EACH [e.content, e.speaker, e.folded_text, e.group_key]
OPTIONS {indexConfig: {`fulltext.analyzer`: 'english', `fulltext.eventually_consistent`: true}};
