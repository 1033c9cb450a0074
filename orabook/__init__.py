"""What the chapters of the book need around oralib, and what builds and runs them.

- ``experiments``, ``laws``: the paper's figures, recomputed, and exact laws around them;
- ``figures``, ``drawings``, ``tables``: what a chapter shows;
- ``parameters``, ``results``: what a chapter can be run with, and what a run records;
- ``runs``: chapters run again, by ``orabook run`` and ``orabook sweep``;
- ``studies``, ``trainings``: computations of single chapters, and real trainings with Opacus;
- ``builder``, ``extensions``: the book from its notebooks, with Jupyter Book and Sphinx.

It imports oralib, which knows nothing of it.
"""
