"""Pieces of the screens: state and URL, theme, the canvas component, figures, jobs."""
