"""A training in JAX: jax_privacy draws, clips and adds noise, and optax moves the weights."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax_privacy import clipped_grad
from jax_privacy.batch_selection import CyclicPoissonSampling, pad_to_multiple_of
from jax_privacy.noise_addition import gaussian_privatizer

import oraudit  # the audit

EXAMPLES = 1000
RATE = 0.05
STEPS = 100
CLIP = 1.0
SIGMA = 1.0


def loss(weights, x, y):
    logits = jnp.tanh(x @ weights["hidden"]) @ weights["out"]
    return optax.losses.softmax_cross_entropy_with_integer_labels(logits, y).mean()


def main():
    rng = np.random.default_rng()
    inputs = rng.normal(size=(EXAMPLES, 20)).astype(np.float32)
    labels = (inputs[:, 0] > 0).astype(int)
    weights = {"hidden": jnp.float32(rng.normal(size=(20, 64)) / 5), "out": jnp.zeros((64, 2))}
    clipped_sum = jax.jit(clipped_grad(loss, l2_clip_norm=CLIP, batch_argnums=(1, 2)))
    key = jax.random.wrap_key_data(rng.integers(2**32, size=2, dtype=np.uint32))
    noise = gaussian_privatizer(stddev=SIGMA * CLIP, prng_key=key)
    add_noise = jax.jit(noise.update)
    noise_state = noise.init(weights)
    optimizer = optax.sgd(0.1 / (RATE * EXAMPLES))
    state = optimizer.init(weights)
    sampling = CyclicPoissonSampling(sampling_prob=RATE, iterations=STEPS)
    # [audit]
    gradients_of = jax.jit(jax.vmap(jax.grad(loss), in_axes=(None, 0, 0)))  # the audit
    audit = oraudit.Audit(examples=EXAMPLES, accountant=[(SIGMA, RATE, STEPS)])  # the audit
    for batch in sampling.batch_iterator(EXAMPLES, rng):
        padded = pad_to_multiple_of(batch, 100)  # so that few sizes are compiled
        x, y = inputs[padded], labels[padded]
        clipped = clipped_sum(weights, x, y, is_padding_example=padded < 0)
        noisy, noise_state = add_noise(clipped, noise_state)
        made = gradients_of(weights, x, y)  # the audit
        made = {name: np.asarray(each)[: len(batch)] for name, each in made.items()}  # the audit
        told = {"clip": CLIP, "sigma": SIGMA, "rate": RATE}  # the audit
        seen = {"per_example": made, "inputs": inputs[batch], "weights": weights}  # the audit
        audit.step(clipped=clipped, noisy=noisy, **told, **seen)  # the audit
        updates, state = optimizer.update(noisy, state)
        weights = optax.apply_updates(weights, updates)
    result = audit.result()  # the audit
    print(result)  # the audit
    # [end]
    return result


if __name__ == "__main__":
    main()
