"""From messages and statements to facts."""
