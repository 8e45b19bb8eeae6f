"""The Measure screen: what is set up, what came out, and the runs that were kept."""
