"""The documentation site: `make docs` builds it with Sphinx, without a network and without warnings."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from sphinx.errors import ExtensionError

import jointforest as jf

ROOT = Path(__file__).resolve().parents[1]

sys.modules["jointforest.datasets"] = jf.datasets  # autosummary treats this attribute as a module

project = "jointforest"
author = "The jointforest developers"
version = release = jf.__version__
copyright = author

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_gallery.gen_gallery",
]
templates_path = ["_templates"]

# The repository's web view also shows these pages, so they use plain links, and headings are anchors.
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4

default_role = "obj"  # `Joint.rake` in a docstring is a link
autosummary_generate = True
autodoc_member_order = "groupwise"
autodoc_typehints = "none"  # docstrings describe the types in words
numpydoc_show_class_members = False  # the template of a class lists them

sphinx_gallery_conf = {
    "examples_dirs": [str(ROOT / "examples" / "gallery")],
    "gallery_dirs": ["gallery"],
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_signature": False,
    "write_computation_times": False,
}

html_theme = "pydata_sphinx_theme"
html_title = "jointforest"
html_favicon = "_static/logo.svg"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = [("chooser.js", {"defer": "defer"}), ("live.js", {"defer": "defer"})]
html_context = {"default_mode": "auto"}
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "jointforest", "image_light": "_static/logo.svg", "image_dark": "_static/logo.svg"},
    "header_links_before_dropdown": 8,
    "navbar_persistent": ["search-button"],
    "navigation_with_keys": False,
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}

# Links from docs/ to files beside it, and the pages of the site that contain these files.
BESIDE = {
    "../README.md": "index.md",
    "../CONTRIBUTING.md": "contributing/index.md",
    "../CHANGELOG.md": "contributing/changelog.md",
    "../benchmarks/README.md": "experiments/commands.md",
}


def link_within(app: Any, page: str, source: list[str]) -> None:
    """Replace links to files beside docs/ by links within the site."""
    up = "../" * page.count("/")
    for target, here in BESIDE.items():
        source[0] = re.sub(rf"\]\({re.escape(up + target)}(?=[#)])", f"]({up or './'}{here}", source[0])


def write_explorer(app: Any, failure: Exception | None) -> None:
    """Write the report of the penguins, which the front page shows in a frame."""
    if failure is None and app.builder.format == "html":
        penguins = jf.datasets.load_penguins()
        joint = jf.HiddenTreeForest(random_state=0).fit(penguins).joint_  # small enough for a report without reduction
        joint.report(Path(app.outdir) / "penguins.html", penguins, target="species", examples=3, title="penguins")


# Files that a page loads from another site. Links are allowed.
LOADS = re.compile(r"""(?:<(?:script|img|iframe|source)[^>]*?src|<link[^>]*?href)=["']?(?:https?:)?//[^>"']*""")


def refuse_network(app: Any, failure: Exception | None) -> None:
    """Fail if a page would load something from another site."""
    for path in sorted(Path(app.outdir).rglob("*.html")):
        if found := LOADS.search(path.read_text(encoding="utf-8")):
            raise ExtensionError(f"{path.name} loads from another site: {found.group()}")


def setup(app: Any) -> None:
    """Register the functions of this file; Sphinx calls this."""
    app.connect("source-read", link_within)
    app.connect("build-finished", write_explorer)
    app.connect("build-finished", refuse_network)
