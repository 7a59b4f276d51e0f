"""The quality of extraction: this project's conversations, what is expected of each, and the scores of a run."""
