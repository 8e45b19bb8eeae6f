"""Undo and redo: two buttons and their keys, as a component, so that presses in quick succession all count."""
