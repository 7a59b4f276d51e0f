"""The room that speaks to language models: a client, prompts kept as files, and replay of recorded completions."""
