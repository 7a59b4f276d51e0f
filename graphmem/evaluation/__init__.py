"""How well memories answer: conversations of benchmarks are stored as users store theirs, and questions are judged."""
