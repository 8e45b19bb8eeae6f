"""The reference of the mask language: grammar, patterns and comparisons, with examples that a press adds."""
