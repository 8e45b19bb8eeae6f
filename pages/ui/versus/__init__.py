"""Two masks held against each other: what each is and costs, and where they differ, drawn and counted."""
