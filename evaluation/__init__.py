"""How well memories are taken from conversations: this project's own conversations, and the scores of a run."""
