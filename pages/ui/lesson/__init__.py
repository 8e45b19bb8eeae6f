"""The lesson: its steps, the exercises and how the library checks them, the board they are done on."""
