"""Without Node.js the tests of this folder are not collected: tests/browser runs the same scripts in a browser."""

from __future__ import annotations

from .node import NODE

collect_ignore_glob = [] if NODE else ["test_*.py"]
