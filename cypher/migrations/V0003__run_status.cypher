// Unfinished runs, which are looked for at intervals, by their status.
CREATE INDEX graphmem_run_status IF NOT EXISTS FOR (r:ConsolidationRun) ON (r.status);
