"""The screens, one file each; what they share is in `pages.ui`."""
