"""`python -m sumformer` is `sumformer`."""

from sumformer.cli import main

main()
