// What is left of messages whose text went into a summary, and those summaries.
CREATE INDEX graphmem_archived_message IF NOT EXISTS FOR (m:ArchivedEpisode) ON (m.group_id, m.message_id);
CREATE INDEX graphmem_session_archive IF NOT EXISTS FOR (a:SessionArchive) ON (a.group_id, a.session_id);
