"""`python -m bespeak` runs the command line."""

from bespeak.app.cli.main import main

if __name__ == "__main__":
    main()
