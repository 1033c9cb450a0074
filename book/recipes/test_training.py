"""The audit as a unit test: `pytest test_training.py`, in every change of the training."""

from plain_opacus import private_training, train

import oraudit


def test_training_is_private_as_stated():
    with oraudit.watch() as audits:
        train(epochs=5)  # a small copy is enough: a hundred steps
    audits.check()


def test_an_example_moves_a_step_by_at_most_the_clip():
    model, optimizer, loader, step = private_training()
    batch = next(iter(loader))
    oraudit.neighbours(step, model, optimizer, batch).check()
