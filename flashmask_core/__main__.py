"""`python -m flashmask_core show | tiles | bench | train | export ...`: the library for people on a server without a browser."""

import sys

try:
    from .bench.cli import main

    sys.exit(main())
except KeyboardInterrupt:  # while the imports, torch's above all, are still going on
    sys.exit(130)
