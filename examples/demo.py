"""A tour on a small real table: learn the joint distribution of the Palmer penguins and ask it questions.

Run it with ``make demo``, or ``python examples/demo.py`` where jointforest and pandas are installed.
"""

from __future__ import annotations

import shlex
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

import jointforest as jf

STARTED = time.perf_counter()
EXPLORE = "import jointforest as jf; jf.AdversarialForest().fit(jf.datasets.load_penguins()).joint_.explore().wait()"


@contextmanager
def chapter(title: str) -> Iterator[None]:
    """Print a title, what happens under it, and how long it took."""
    print(f"\n== {title}")
    start = time.perf_counter()
    yield
    print(f"   ({time.perf_counter() - start:.1f} s)")


def show(text: object) -> None:
    """Print indented."""
    print("   " + str(text).replace("\n", "\n   "))


def ask(joint: jf.Joint, question: str) -> None:
    """Print a question and its answer."""
    answer = joint.query(question)
    if isinstance(answer, dict):
        text = ", ".join(f"{level} {share:.3f}" for level, share in answer.items())
    else:
        text = f"{answer:.4g}" if isinstance(answer, float) else str(answer)
    show(f"{question:<62} = {text}")


def main() -> None:
    """Tell the story."""
    print("The first call of each kernel compiles it; the compiled code is kept for later runs.")

    penguins = jf.datasets.load_penguins()
    with chapter(f"Learn {penguins.shape[0]} penguins, {penguins.shape[1]} columns, some cells missing"):
        joint = jf.AdversarialForest(random_state=0).fit(penguins).joint_
        show(f"{joint.n_trees} trees, {joint.n_leaves} leaves")
        for name, kind in joint.kinds.items():
            show(f"{name:<20} {kind}")

    with chapter("Ask"):
        ask(joint, "P(species | bill_length_mm > 45, island = 'Biscoe')")
        ask(joint, "P(body_mass_g > 5000 | species = 'Gentoo')")
        ask(joint, "E(flipper_length_mm | sex = 'FEMALE')")
        heavy = joint.given(body_mass_g=jf.between(5000, None), sex="MALE")
        show(
            f"heavy males: log-probability {heavy.log_probability:.3f}, "
            f"flipper {heavy.mean('flipper_length_mm'):.1f} -+ {heavy.std('flipper_length_mm'):.1f} mm"
        )

    with chapter("How likely is each row?  Missing cells are marginalised"):
        log_density = joint.log_density(penguins)
        show(f"mean log-density {log_density.mean():.3f}; the least likely row:")
        show(penguins.iloc[[int(np.argmin(log_density))]].to_string(index=False))

    with chapter("Draw a synthetic table"):
        synthetic = joint.sample(1000, random_state=0)
        show(synthetic.head(4).to_string(index=False))
        both = [frame["body_mass_g"].astype(float).mean() for frame in (penguins, synthetic)]
        show(f"mean body mass: {both[0]:.0f} g observed, {both[1]:.0f} g in 1000 synthetic rows")

    with chapter("Fill in what is missing"):
        rows = penguins[penguins.isna().any(axis=1)].head(3)
        show(rows.to_string(index=False))
        show("becomes")
        show(joint.impute(rows).to_string(index=False))

    with chapter("Save and load"), tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "penguins.joint"
        joint.save(path)
        again = jf.load(path)
        same = np.array_equal(again.log_density(penguins), log_density)
        show(f"{path.stat().st_size / 1024:.0f} KiB; the same answers: {'yes' if same else 'NO'}")

    with chapter("Look at it: a page that answers clicks"):
        joint.report("penguins.html", penguins, target="species", examples=3, title="penguins")
        show("penguins.html: open it in a browser, from disk; no network is needed.")
        show("The live page, with all answers of the joint:")
        show(f"{Path(sys.executable).parent / 'python'} -c {shlex.quote(EXPLORE)}")

    print(f"\nThe whole tour took {time.perf_counter() - STARTED:.1f} s.")


if __name__ == "__main__":
    main()
