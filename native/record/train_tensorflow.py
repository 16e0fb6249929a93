"""What is recorded of TensorFlow: train_tensorflow.py train|refused CYCLES [grow]."""

import sys

import numpy as np
import tensorflow as tf

gpus = tf.config.list_physical_devices("GPU")
if "grow" in sys.argv:
    tf.config.experimental.set_memory_growth(gpus[0], enable=True)


def step(weight: tf.Variable, size: int) -> None:
    """One step of a model that is a weight: a batch goes to the GPU, a loss comes back."""
    batch = tf.constant(np.ones((size, weight.shape[0]), np.float32))
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.nn.relu(batch * weight))
    weight.assign_sub(0.1 * tape.gradient(loss, weight))
    loss.numpy()


def train(weight: tf.Variable, cycles: int) -> None:
    """Steps with batches of changing size."""
    for _ in range(cycles):
        for size in (8, 16, 12, 24, 8):
            step(weight, size)


def refused(weight: tf.Variable, cycles: int) -> None:
    """Runs out of memory, frees and goes on, again and again."""
    for _ in range(cycles):
        kept = []
        try:
            while True:
                kept.append(tf.ones(1 << 27))
        except tf.errors.ResourceExhaustedError:
            kept.clear()
        step(weight, 8)


with tf.device("GPU:0"):
    start = tf.Variable(np.ones(1 << 18, np.float32))
    {"train": train, "refused": refused}[sys.argv[1]](start, int(sys.argv[2]))
print("went on", sys.argv[2])
