"""The paper's tables beside what was measured here: where one looks, the data, the tables and the figures."""
