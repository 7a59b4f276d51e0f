"""The quality of consolidation: memories of users as cases, what is right for each, and the scores of a run."""
