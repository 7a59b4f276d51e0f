"""Language models: the interface, the client of all providers, prompts, and replay of completions."""
