"""Packing a dataset: what is packed, how it is drawn."""
