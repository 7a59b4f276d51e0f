"""What other memories and chat logs look like from outside, and how each is read: pure, one module a format."""
