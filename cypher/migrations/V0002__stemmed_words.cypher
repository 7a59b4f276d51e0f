// Words by their stems, for recall: "camped" finds "camping". Who speaks is part of what a message says.

CREATE FULLTEXT INDEX graphmem_fact_words IF NOT EXISTS FOR ()-[e:RELATES_TO]-() ON EACH [e.fact, e.search_text, e.group_key]
OPTIONS {indexConfig: {`fulltext.analyzer`: 'english'}};
CREATE FULLTEXT INDEX graphmem_message_words IF NOT EXISTS FOR (e:Episodic) ON EACH [e.content, e.speaker, e.group_key]
OPTIONS {indexConfig: {`fulltext.analyzer`: 'english'}};
