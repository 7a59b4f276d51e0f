"""Language models and embedding models: their interfaces, providers, prompts and recorded completions."""
