"""Evaluation of memories: conversations of benchmarks are stored like users' own, and answers to questions judged."""
