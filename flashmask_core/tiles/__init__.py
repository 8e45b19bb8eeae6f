# Runs of a line of tiles, 256 bytes. The paper's masks need at most 7 but random eviction, which overflows near its start.
MAX_RUNS = 32
