# SPDX-License-Identifier: GPL-2.0
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))
os.environ.setdefault("RING3", str(ROOT / "bin" / "ring3"))

# Where the package is not installed, nothing has told pytest of its fixtures.
pytest_plugins = [] if "ring3.pytest_plugin" in sys.modules else ["ring3.pytest_plugin"]
