"""Language models: the interface, the client of OpenAI-compatible servers, prompts, and replay of completions."""
