// Expired changes and runs are found by their user, so that no query reads these indexes.
DROP INDEX graphmem_change_time IF EXISTS;
DROP INDEX graphmem_run_finished IF EXISTS;
