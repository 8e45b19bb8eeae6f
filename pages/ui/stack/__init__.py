"""The stack of layers as an instrument: their parameters as sliders, numbers and tables."""
