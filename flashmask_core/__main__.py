"""`python -m flashmask_core show | tiles | bench | export ...`: the library for people on a server without a browser."""

import sys

from .bench.cli import main

sys.exit(main())
