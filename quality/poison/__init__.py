"""Text that addresses the assistant, and harmless text that looks alike."""
