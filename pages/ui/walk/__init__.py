"""Walking through what a kernel does with one tile: where one is, a small mask, its story, the component."""
