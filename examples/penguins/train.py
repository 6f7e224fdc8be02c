#!/usr/bin/env python3
"""Tells the sex of a penguin by what a ruler and a balance say. Python standard library only.

Reads three CSV files with a header, standardises with the mean and deviation of the training file, and fits a softmax
regression by gradient descent. The species stands as one column for each that the training file has.

Exit codes: 0 done, 65 non-finite loss, 75 interrupted by SIGTERM or SIGINT after saving (go on with --resume),
78 wrong configuration or data.
"""

import argparse
import csv
import hashlib
import json
import math
import os
import random
import signal
import sys
import time

EXIT_NONFINITE, EXIT_INTERRUPTED, EXIT_CONFIG = 65, 75, 78
HOLDS = ["model", "optimizer", "step", "rng"]
MEASURED = ["beak_length_mm", "beak_depth_mm", "flipper_length_mm", "body_mass_g"]


class ConfigError(Exception):
    """Configuration or data that cannot be used; the message says what to change."""


class Parser(argparse.ArgumentParser):
    def error(self, message):
        self.print_usage(sys.stderr)
        self.exit(EXIT_CONFIG, f"{self.prog}: {message}\n")


def load_config(argv=None):
    p = Parser(description=__doc__.split("\n")[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    p.add_argument("--train-data", default="data/train.csv", help="CSV file the model is fitted on")
    p.add_argument("--val-data", default="data/val.csv", help="CSV file that chooses the best checkpoint")
    p.add_argument("--test-data", default="data/test.csv", help="CSV file that is evaluated once, at the end")
    p.add_argument("--target", default="sex", help="column with the class name")
    p.add_argument("--id-column", default="bird", help="column that names a row")
    p.add_argument("--output-dir", default="outputs", help="folder for metrics, predictions and summary")
    p.add_argument("--checkpoint-dir", default="checkpoints", help="folder for checkpoints; empty unless --resume is given")
    p.add_argument("--epochs", type=int, default=60, help="passes over the training file")
    p.add_argument("--batch-size", type=int, default=16, help="birds per optimizer step")
    p.add_argument("--learning-rate", type=float, default=0.1, help="learning rate")
    p.add_argument("--optimizer", default="sgd", choices=["sgd"], help="stochastic gradient descent without momentum")
    p.add_argument("--scheduler", default="none", choices=["none"], help="the learning rate is constant")
    p.add_argument("--loss", default="cross_entropy", choices=["cross_entropy"], help="loss that is minimised")
    p.add_argument("--seed", type=int, default=17, help="seed of the row order")
    p.add_argument("--checkpoint-every", type=int, default=5, help="epochs between checkpoints")
    p.add_argument("--resume", default="", help="checkpoint to continue from, exactly")
    p.add_argument("--precision", default="fp64", choices=["fp64"], help="arithmetic of Python floats")
    config = p.parse_args(argv)
    for name in ("epochs", "batch_size", "checkpoint_every"):
        if getattr(config, name) < 1:
            p.error(f"--{name.replace('_', '-')} must be at least 1, got {getattr(config, name)}")
    if not 0 < config.learning_rate < math.inf:
        p.error(f"--learning-rate must be above 0, got {config.learning_rate}")
    return config


# Data


def read_birds(path, config):
    """Returns [(id, measurements, species, class)] of one file."""
    try:
        with open(path, newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
    except OSError as e:
        raise ConfigError(f"{path}: {e.strerror}; pass an existing CSV file") from e
    try:
        return [(r[config.id_column], [float(r[m]) for m in MEASURED], r["species"], r[config.target]) for r in rows]
    except (KeyError, ValueError, TypeError) as e:
        raise ConfigError(f"{path}: {e!r}; columns {config.id_column}, {config.target}, species and {', '.join(MEASURED)} are needed") from e


def build_dataset(config):
    """Standardises the three files with the mean and deviation of the training file."""
    parts = {"train": read_birds(config.train_data, config), "val": read_birds(config.val_data, config), "test": read_birds(config.test_data, config)}
    classes, kinds = sorted({c for _, _, _, c in parts["train"]}), sorted({k for _, _, k, _ in parts["train"]})
    if len(classes) < 2:
        raise ConfigError(f"{config.train_data}: one class only in column {config.target!r}; at least two are needed")
    columns = list(zip(*(x for _, x, _, _ in parts["train"])))
    mean = [sum(c) / len(c) for c in columns]
    std = [math.sqrt(sum((v - m) ** 2 for v in c) / len(c)) or 1.0 for c, m in zip(columns, mean)]
    data = {"classes": classes, "inputs": len(mean) + len(kinds)}
    for split, birds in parts.items():
        unknown = sorted({c for _, _, _, c in birds} - set(classes))
        if unknown:
            raise ConfigError(f"{split}: class {unknown[0]!r} is not in the training file, which has {', '.join(classes)}")
        data[split] = [(name, [(v - m) / s for v, m, s in zip(x, mean, std)] + [float(kind == k) for k in kinds], classes.index(c)) for name, x, kind, c in birds]
    return data


# Model


def build_model(inputs, outputs):
    """A row of weights for each class, its bias last."""
    return [[0.0] * (inputs + 1) for _ in range(outputs)]


def build_optimizer(model):
    return {"name": "sgd"}


def forward(model, x):
    """Returns the probability of each class and the log of their normaliser, with the logits."""
    logits = [sum(w * v for w, v in zip(row, x)) + row[-1] for row in model]
    top = max(logits)
    exps = [math.exp(v - top) for v in logits]
    return [e / sum(exps) for e in exps], top + math.log(sum(exps)), logits


def train_step(config, state, batch):
    """Does one step on a batch of birds and returns their summed loss."""
    model, loss = state["model"], 0.0
    gradient = [[0.0] * len(row) for row in model]
    for _, x, y in batch:
        probabilities, normaliser, logits = forward(model, x)
        loss += normaliser - logits[y]
        for k, row in enumerate(gradient):
            delta = (probabilities[k] - (k == y)) / len(batch)
            for j, v in enumerate(x):
                row[j] += delta * v
            row[-1] += delta
    for w, g in zip(model, gradient):
        for j in range(len(w)):
            w[j] -= config.learning_rate * g[j]
    state["step"] += 1
    return loss


def run_evaluation(model, data, split):
    """Returns mean loss, accuracy and the predicted class of each bird."""
    loss, predictions = 0.0, []
    for name, x, y in data[split]:
        probabilities, normaliser, logits = forward(model, x)
        loss += normaliser - logits[y]
        predictions.append((name, y, probabilities.index(max(probabilities))))
    return loss / len(predictions), sum(y == k for _, y, k in predictions) / len(predictions), predictions


# Files


def write_atomically(path, data):
    """Temporary file, fsync, rename: a reader sees the old file or the whole new one."""
    with open(path + ".tmp", "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(path + ".tmp", path)


def write_json(path, value):
    write_atomically(path, (json.dumps(value, indent=2) + "\n").encode())


def checkpoint_path(folder, epoch):
    return os.path.join(folder, f"epoch-{epoch:04d}.json")


def save_checkpoint(config, state):
    """Writes the checkpoint and the marker that says it is whole; the best one and the last three stay."""
    path, data = checkpoint_path(config.checkpoint_dir, state["epoch"]), json.dumps(state).encode()
    write_atomically(path, data)
    marker = {"sha256": "sha256:" + hashlib.sha256(data).hexdigest(), "bytes": len(data), "step": state["step"], "epoch": state["epoch"], "holds": HOLDS}
    write_json(path + ".complete.json", marker)
    kept = sorted(n for n in os.listdir(config.checkpoint_dir) if n.endswith(".complete.json"))
    best = state["best"] and os.path.basename(checkpoint_path("", state["best"]["epoch"]))
    for old in kept[:-3]:
        if old != f"{best}.complete.json":
            os.remove(os.path.join(config.checkpoint_dir, old))
            os.remove(os.path.join(config.checkpoint_dir, old[: -len(".complete.json")]))


def load_checkpoint(path):
    """Reads a checkpoint only where its marker is there and its hash agrees."""
    try:
        with open(path + ".complete.json", encoding="utf-8") as file:
            marker = json.load(file)
        with open(path, "rb") as file:
            data = file.read()
    except (OSError, ValueError) as e:
        raise ConfigError(f"{path}: no complete checkpoint: {e}") from e
    if "sha256:" + hashlib.sha256(data).hexdigest() != marker["sha256"]:
        raise ConfigError(f"{path}: the bytes differ from those its marker names; use an earlier checkpoint")
    return json.loads(data)


# The run


def log(config, state, split, name, value, unit=""):
    row = {"time": round(time.time(), 3), "step": state["step"], "epoch": state["epoch"], "split": split, "name": name, "value": value, "unit": unit}
    if not math.isfinite(value):
        row.update(value=None, nonfinite="nan" if math.isnan(value) else "inf")
    with open(os.path.join(config.output_dir, "metrics.jsonl"), "a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")


def prepare(config):
    """Makes the folders; what an earlier run said is no longer true of them."""
    for folder in (config.output_dir, config.checkpoint_dir):
        os.makedirs(folder, exist_ok=True)
    present = sorted(os.listdir(config.checkpoint_dir))
    if present and not config.resume:
        raise ConfigError(f"{config.checkpoint_dir}: holds {present[0]}; a start from scratch needs an empty folder, or pass --resume")
    for name in ("predictions-val.jsonl", "predictions-test.jsonl", "summary.json"):
        if os.path.exists(os.path.join(config.output_dir, name)):
            os.remove(os.path.join(config.output_dir, name))
    path, kept = os.path.join(config.output_dir, "metrics.jsonl"), b""
    state = load_checkpoint(config.resume) if config.resume else None
    if state and os.path.exists(path):
        with open(path, "rb") as file:
            kept = b"".join(line for line in file if line.endswith(b"\n") and json.loads(line)["step"] <= state["step"])
    write_atomically(path, kept)
    return state


def run_training(config, data, state):
    """Trains to the last epoch, or until a signal asks to stop; returns whether it was asked to."""
    stop, rng = [], random.Random()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda received, _: stop.append(received))
    rng.setstate((state["rng"][0], tuple(state["rng"][1]), state["rng"][2]))
    while state["epoch"] < config.epochs and not stop:
        order, loss = list(range(len(data["train"]))), 0.0
        rng.shuffle(order)
        for start in range(0, len(order), config.batch_size):
            loss += train_step(config, state, [data["train"][i] for i in order[start : start + config.batch_size]])
        state.update(epoch=state["epoch"] + 1, rng=rng.getstate())
        val_loss, accuracy, _ = run_evaluation(state["model"], data, "val")
        for split, name, value in (("train", "loss", loss / len(order)), ("val", "loss", val_loss), ("val", "accuracy", accuracy)):
            log(config, state, split, name, value)
        print(f"epoch {state['epoch']}/{config.epochs} step {state['step']} train/loss {loss / len(order):.5f} val/loss {val_loss:.5f} val/accuracy {accuracy:.4f}", flush=True)
        if not math.isfinite(loss + val_loss):
            raise FloatingPointError(f"epoch {state['epoch']}: train/loss {loss}, val/loss {val_loss}")
        due = state["epoch"] % config.checkpoint_every == 0 or state["epoch"] == config.epochs
        if due and (state["best"] is None or val_loss < state["best"]["value"]):
            state["best"] = {"metric": "val/loss", "value": val_loss, "epoch": state["epoch"], "step": state["step"]}
        if due or stop:
            save_checkpoint(config, state)
    return state["epoch"] < config.epochs


def report_best(config, data, state):
    """Judges validation and test with the best checkpoint, as read back from its file."""
    path = checkpoint_path(config.checkpoint_dir, state["best"]["epoch"])
    model, names = load_checkpoint(path)["model"], data["classes"]
    at = {"step": state["best"]["step"], "epoch": state["best"]["epoch"]}
    for split in ("val", "test"):
        loss, accuracy, predictions = run_evaluation(model, data, split)
        lines = [json.dumps({"id": name, "target": names[y], "prediction": names[k]}) for name, y, k in predictions]
        write_atomically(os.path.join(config.output_dir, f"predictions-{split}.jsonl"), ("\n".join(lines) + "\n").encode())
    log(config, at, "test", "loss", loss)
    log(config, at, "test", "accuracy", accuracy)
    print(f"best checkpoint {path}: test/loss {loss:.5f} test/accuracy {accuracy:.4f}", flush=True)


def write_summary(config, state, status, started):
    best = state["best"] and {**state["best"], "checkpoint": checkpoint_path(config.checkpoint_dir, state["best"]["epoch"])}
    write_json(os.path.join(config.output_dir, "summary.json"), {"status": status, "best": best, "epochs": state["epoch"], "steps": state["step"], "seconds": round(time.monotonic() - started, 3)})


def main(argv=None):
    started, config, state = time.monotonic(), load_config(argv), None
    try:
        data = build_dataset(config)
        state = prepare(config)
        if state is None:
            rng = random.Random(config.seed)
            model = build_model(data["inputs"], len(data["classes"]))
            state = {"epoch": 0, "step": 0, "best": None, "model": model, "optimizer": build_optimizer(model), "rng": rng.getstate()}
        if run_training(config, data, state):
            write_summary(config, state, "interrupted", started)
            print(f"interrupted after epoch {state['epoch']}; continue with --resume {checkpoint_path(config.checkpoint_dir, state['epoch'])}", file=sys.stderr)
            return EXIT_INTERRUPTED
        report_best(config, data, state)
        write_summary(config, state, "completed", started)
        return 0
    except ConfigError as e:
        print(f"train.py: {e}", file=sys.stderr)
        return EXIT_CONFIG
    except (FloatingPointError, OverflowError) as e:
        print(f"train.py: not finite: {e}; lower --learning-rate", file=sys.stderr)
        write_summary(config, state, "failed", started)
        return EXIT_NONFINITE


if __name__ == "__main__":
    sys.exit(main())
