"""Learn the joint distribution of the Palmer penguins, ask it questions, and draw rows from it.

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
    """Print a title before the block and the elapsed time after it."""
    print(f"\n== {title}")
    start = time.perf_counter()
    yield
    print(f"   ({time.perf_counter() - start:.1f} s)")


def show(text: object) -> None:
    """Print a text with indentation."""
    print("   " + str(text).replace("\n", "\n   "))


def ask(joint: jf.Joint, question: str) -> None:
    """Print a question and its answer."""
    answer = joint.query(question)
    if isinstance(answer, dict):
        text = ", ".join(f"{level} {probability:.3f}" for level, probability in answer.items())
    else:
        text = f"{answer:.4g}" if isinstance(answer, float) else str(answer)
    show(f"{question:<62} = {text}")


def main() -> None:
    """Run all chapters of the demonstration."""
    print("The first call of each compiled function takes longer. The compiled code is kept for later runs.")

    penguins = jf.datasets.load_penguins()
    with chapter(f"Learn from {penguins.shape[0]} penguins with {penguins.shape[1]} columns and some missing cells"):
        joint = jf.AdversarialForest(random_state=0).fit(penguins).joint_
        show(f"{joint.n_trees} trees, {joint.n_leaves} leaves")
        for name, kind in joint.kinds.items():
            show(f"{name:<20} {kind}")

    with chapter("Ask questions"):
        ask(joint, "P(species | bill_length_mm > 45, island = 'Biscoe')")
        ask(joint, "P(body_mass_g > 5000 | species = 'Gentoo')")
        ask(joint, "E(flipper_length_mm | sex = 'FEMALE')")
        heavy = joint.given(body_mass_g=jf.between(5000, None), sex="MALE")
        show(
            f"heavy males: log-probability {heavy.log_probability:.3f}, "
            f"flipper length {heavy.mean('flipper_length_mm'):.1f} mm, "
            f"standard deviation {heavy.std('flipper_length_mm'):.1f} mm"
        )

    with chapter("Compute the log-density of each row, with missing cells marginalised"):
        log_density = joint.log_density(penguins)
        show(f"mean log-density {log_density.mean():.3f}; the least likely row:")
        show(penguins.iloc[[int(np.argmin(log_density))]].to_string(index=False))

    with chapter("Draw a synthetic table"):
        synthetic = joint.sample(1000, random_state=0)
        show(synthetic.head(4).to_string(index=False))
        means = [frame["body_mass_g"].astype(float).mean() for frame in (penguins, synthetic)]
        show(f"mean body mass: {means[0]:.0f} g in the table, {means[1]:.0f} g in 1000 synthetic rows")

    with chapter("Impute missing cells"):
        rows = penguins[penguins.isna().any(axis=1)].head(3)
        show(rows.to_string(index=False))
        show("becomes")
        show(joint.impute(rows).to_string(index=False))

    with chapter("Save and load"), tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "penguins.joint"
        joint.save(path)
        loaded = jf.load(path)
        same = np.array_equal(loaded.log_density(penguins), log_density)
        show(
            f"{path.stat().st_size / 1024:.0f} KiB; the loaded joint gives the same answers: {'yes' if same else 'NO'}"
        )

    with chapter("Write a report that answers clicks"):
        joint.report("penguins.html", penguins, target="species", examples=3, title="penguins")
        show("Open penguins.html in a browser. It needs no network.")
        show("This command opens the explorer, which uses the joint itself:")
        show(f"{Path(sys.executable).parent / 'python'} -c {shlex.quote(EXPLORE)}")

    print(f"\nThe demonstration took {time.perf_counter() - STARTED:.1f} s.")


if __name__ == "__main__":
    main()
