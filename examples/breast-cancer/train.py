#!/usr/bin/env python3
"""Trains a small classifier on a table of numeric features. Python standard library only.

Reads three CSV files with a header, fits the standardisation on the training file alone, trains a network with one
tanh layer by stochastic gradient descent, and keeps the checkpoint with the lowest validation loss.

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
from operator import mul

EXIT_NONFINITE = 65
EXIT_INTERRUPTED = 75
EXIT_CONFIG = 78

FORMAT = "breast-cancer-mlp-v1"
HOLDS = ["model", "optimizer", "scheduler", "step", "rng"]
# What may change between a run and its continuation without changing a number of it.
NOT_IN_IDENTITY = {"train_data", "val_data", "test_data", "output_dir", "checkpoint_dir", "resume", "keep_last"}


class ConfigError(Exception):
    """Configuration or data that cannot be used; the message says what to change."""


class NonFinite(Exception):
    """A loss or gradient that is not a finite number."""


class Parser(argparse.ArgumentParser):
    def error(self, message):
        self.print_usage(sys.stderr)
        self.exit(EXIT_CONFIG, f"{self.prog}: {message}\n")


def load_config(argv=None):
    p = Parser(description=__doc__.split("\n")[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    p.add_argument("--train-data", default="data/train.csv", help="CSV file the model is fitted on")
    p.add_argument("--val-data", default="data/val.csv", help="CSV file that chooses the best checkpoint")
    p.add_argument("--test-data", default="data/test.csv", help="CSV file that is evaluated once, at the end")
    p.add_argument("--target", default="diagnosis", help="column with the class name")
    p.add_argument("--id-column", default="sample", help="column that names a row, never a feature; '' for none: ids are row-<n> by position")
    p.add_argument("--output-dir", default="outputs", help="folder for metrics, predictions and summary")
    p.add_argument("--checkpoint-dir", default="checkpoints", help="folder for checkpoints; empty unless --resume is given")
    p.add_argument("--epochs", type=int, default=60, help="passes over the training file")
    p.add_argument("--batch-size", type=int, default=16, help="rows per optimizer step")
    p.add_argument("--learning-rate", type=float, default=0.01, help="peak learning rate")
    p.add_argument("--weight-decay", type=float, default=0.03, help="L2 penalty on weights, not on biases")
    p.add_argument("--momentum", type=float, default=0.9, help="momentum of the optimizer")
    p.add_argument("--optimizer", default="sgd", choices=["sgd"], help="stochastic gradient descent with momentum")
    p.add_argument("--scheduler", default="cosine", choices=["cosine", "none"], help="learning rate over the optimizer steps")
    p.add_argument("--loss", default="cross_entropy", choices=["cross_entropy"], help="loss that is minimised")
    p.add_argument("--hidden-size", type=int, default=12, help="units of the hidden layer")
    p.add_argument("--clip-norm", type=float, default=5.0, help="largest gradient norm; 0 switches clipping off")
    p.add_argument("--seed", type=int, default=17, help="seed of initial weights and row order")
    p.add_argument("--checkpoint-every", type=int, default=5, help="epochs between checkpoints")
    p.add_argument("--keep-last", type=int, default=3, help="latest checkpoints to keep, beside the best one")
    p.add_argument("--resume", default="", help="checkpoint to continue from, exactly")
    p.add_argument("--precision", default="fp64", choices=["fp64"], help="arithmetic of Python floats")
    config = p.parse_args(argv)
    for name in ("epochs", "batch_size", "hidden_size", "checkpoint_every", "keep_last"):
        if getattr(config, name) < 1:
            p.error(f"--{name.replace('_', '-')} must be at least 1, got {getattr(config, name)}")
    for name in ("learning_rate", "weight_decay", "momentum", "clip_norm"):
        if not 0 <= getattr(config, name) < math.inf:
            p.error(f"--{name.replace('_', '-')} must be a finite number of at least 0, got {getattr(config, name)}")
    return config


# Data


def read_table(path, target, id_column):
    """Returns (feature names, ids, rows of floats, class names) of one CSV file."""
    try:
        file = open(path, newline="", encoding="utf-8")
    except OSError as e:
        raise ConfigError(f"{path}: {e.strerror}; pass an existing CSV file") from e
    with file:
        reader = csv.reader(file)
        header = next(reader, [])
        for column in filter(None, [target, id_column]):
            if column not in header:
                raise ConfigError(f"{path}: no column {column!r}; the columns are {', '.join(header)}")
        target_at = header.index(target)
        id_at = header.index(id_column) if id_column else -1
        feature_at = [i for i in range(len(header)) if i not in (target_at, id_at)]
        ids, rows, labels = [], [], []
        for record in reader:
            if len(record) != len(header):
                raise ConfigError(f"{path}:{reader.line_num}: {len(record)} fields, expected {len(header)}")
            try:
                row = [float(record[i]) for i in feature_at]
            except ValueError as e:
                raise ConfigError(f"{path}:{reader.line_num}: {e}; every feature must be a number") from e
            if not all(map(math.isfinite, row)):
                raise ConfigError(f"{path}:{reader.line_num}: a feature is not finite")
            ids.append(record[id_at] if id_column else f"row-{len(rows)}")
            rows.append(row)
            labels.append(record[target_at])
    if not rows:
        raise ConfigError(f"{path}: no rows")
    return [header[i] for i in feature_at], ids, rows, labels


def build_dataset(config):
    """Reads the three files and standardises them with the mean and deviation of the training file."""
    features, ids, rows, labels = read_table(config.train_data, config.target, config.id_column)
    classes = sorted(set(labels))
    if len(classes) < 2:
        raise ConfigError(f"{config.train_data}: one class only in column {config.target!r}; at least two are needed")
    columns = list(zip(*rows))
    mean = [sum(c) / len(c) for c in columns]
    std = [math.sqrt(sum((v - m) ** 2 for v in c) / len(c)) or 1.0 for c, m in zip(columns, mean)]

    def part(path, ids, rows, labels):
        unknown = sorted(set(labels) - set(classes))
        if unknown:
            raise ConfigError(f"{path}: class {unknown[0]!r} is not in the training file, which has {', '.join(classes)}")
        scaled = [[(v - m) / s for v, m, s in zip(row, mean, std)] for row in rows]
        return {"ids": ids, "x": scaled, "y": [classes.index(label) for label in labels]}

    data = {"features": features, "classes": classes, "mean": mean, "std": std}
    data["train"] = part(config.train_data, ids, rows, labels)
    for split, path in (("val", config.val_data), ("test", config.test_data)):
        other, ids, rows, labels = read_table(path, config.target, config.id_column)
        if other != features:
            raise ConfigError(f"{path}: its feature columns differ from those of {config.train_data}")
        data[split] = part(path, ids, rows, labels)
    return data


def build_dataloader(part, batch_size, rng):
    """Yields batches of row positions in an order drawn from rng; the last batch may be smaller."""
    order = list(range(len(part["x"])))
    rng.shuffle(order)
    for start in range(0, len(order), batch_size):
        yield order[start : start + batch_size]


# Model


def build_model(inputs, hidden, outputs, rng):
    """One tanh layer and a linear one: lists of rows, so that a step can change them in place."""

    def layer(n_in, n_out):
        bound = math.sqrt(6.0 / (n_in + n_out))
        return {"weight": [[rng.uniform(-bound, bound) for _ in range(n_in)] for _ in range(n_out)], "bias": [0.0] * n_out}

    return {"hidden": layer(inputs, hidden), "output": layer(hidden, outputs)}


def zeros_like(model):
    return {n: {"weight": [[0.0] * len(r) for r in l["weight"]], "bias": [0.0] * len(l["bias"])} for n, l in model.items()}


def tensors(model):
    """Yields (row, whether weight decay applies) for every row of parameters."""
    for layer in model.values():
        for row in layer["weight"]:
            yield row, True
        yield layer["bias"], False


def linear(layer, x):
    return [sum(map(mul, w, x)) + b for w, b in zip(layer["weight"], layer["bias"])]


def forward(model, x):
    """Returns (hidden activations, class probabilities, log of their normaliser, logits)."""
    hidden = [math.tanh(v) for v in linear(model["hidden"], x)]
    logits = linear(model["output"], hidden)
    top = max(logits)
    exps = [math.exp(v - top) for v in logits]
    total = sum(exps)
    return hidden, [e / total for e in exps], top + math.log(total), logits


def add_outer(layer, delta, x):
    for k, d in enumerate(delta):
        layer["weight"][k] = [g + d * v for g, v in zip(layer["weight"][k], x)]
        layer["bias"][k] += d


# Optimisation


def build_optimizer(config, model):
    return {"name": config.optimizer, "velocity": zeros_like(model)}


def build_scheduler(config, total_steps):
    return {"name": config.scheduler, "step": 0, "total_steps": total_steps}


def learning_rate(config, scheduler):
    if scheduler["name"] == "none":
        return config.learning_rate
    return config.learning_rate * 0.5 * (1 + math.cos(math.pi * scheduler["step"] / scheduler["total_steps"]))


def train_step(config, model, optimizer, scheduler, part, batch):
    """Does one optimizer step on the rows of batch and returns their summed loss."""
    gradient, loss = zeros_like(model), 0.0
    output_columns = list(zip(*model["output"]["weight"]))
    for i in batch:
        x, y = part["x"][i], part["y"][i]
        hidden, probabilities, normaliser, logits = forward(model, x)
        loss += normaliser - logits[y]
        delta = [p - (k == y) for k, p in enumerate(probabilities)]
        add_outer(gradient["output"], delta, hidden)
        add_outer(gradient["hidden"], [sum(map(mul, w, delta)) * (1 - h * h) for w, h in zip(output_columns, hidden)], x)
    norm = math.sqrt(sum(g * g for row, _ in tensors(gradient) for g in row)) / len(batch)
    if not (math.isfinite(loss) and math.isfinite(norm)):
        raise NonFinite(f"loss {loss / len(batch)}, gradient norm {norm}")
    scale = 1 / len(batch)
    if config.clip_norm and norm > config.clip_norm:
        scale *= config.clip_norm / norm
    rate = learning_rate(config, scheduler)
    for (w, decays), (g, _), (v, _) in zip(tensors(model), tensors(gradient), tensors(optimizer["velocity"])):
        decay = config.weight_decay if decays else 0.0
        v[:] = [config.momentum * vi + scale * gi + decay * wi for vi, gi, wi in zip(v, g, w)]
        w[:] = [wi - rate * vi for wi, vi in zip(w, v)]
    scheduler["step"] += 1
    return loss


def run_evaluation(model, part):
    """Returns mean loss, accuracy and the predicted class of each row."""
    loss, predicted = 0.0, []
    for x, y in zip(part["x"], part["y"]):
        _, probabilities, normaliser, logits = forward(model, x)
        loss += normaliser - logits[y]
        predicted.append(probabilities.index(max(probabilities)))
    accuracy = sum(map(int.__eq__, predicted, part["y"])) / len(predicted)
    return loss / len(predicted), accuracy, predicted


# Files


def write_atomically(path, data):
    """Temporary file, fsync, rename, fsync of the folder: a reader sees the old file or the whole new one."""
    temporary = f"{path}.tmp"
    with open(temporary, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
    if os.name == "posix":
        folder = os.open(os.path.dirname(path) or ".", os.O_RDONLY)
        os.fsync(folder)
        os.close(folder)


def write_json(path, value):
    data = (json.dumps(value, ensure_ascii=False, indent=2) + "\n").encode()
    write_atomically(path, data)


def checkpoint_path(folder, epoch):
    return os.path.join(folder, f"epoch-{epoch:04d}.json")


def save_checkpoint(config, state):
    """Writes the checkpoint, then the marker that says it is whole, then removes what --keep-last no longer covers."""
    path = checkpoint_path(config.checkpoint_dir, state["epoch"])
    data = json.dumps(state).encode()
    write_atomically(path, data)
    marker = {"sha256": "sha256:" + hashlib.sha256(data).hexdigest(), "bytes": len(data)}
    write_json(path + ".complete.json", {**marker, "step": state["step"], "epoch": state["epoch"], "holds": HOLDS})
    best = state["best"] and checkpoint_path(config.checkpoint_dir, state["best"]["epoch"])
    for old in saved_checkpoints(config.checkpoint_dir)[: -config.keep_last]:
        if old != best:
            os.remove(old + ".complete.json")
            os.remove(old)


def saved_checkpoints(folder):
    names = sorted(n for n in os.listdir(folder) if n.startswith("epoch-") and n.endswith(".complete.json"))
    return [os.path.join(folder, n[: -len(".complete.json")]) for n in names]


def load_checkpoint(path):
    """Reads a checkpoint only if its marker exists and size and hash agree."""
    try:
        with open(path + ".complete.json", encoding="utf-8") as file:
            marker = json.load(file)
        with open(path, "rb") as file:
            data = file.read()
    except (OSError, ValueError) as e:
        raise ConfigError(f"{path}: cannot be read as a complete checkpoint: {e}") from e
    if len(data) != marker["bytes"]:
        raise ConfigError(f"{path}: {len(data)} bytes, its marker says {marker['bytes']}; use an earlier checkpoint")
    if "sha256:" + hashlib.sha256(data).hexdigest() != marker["sha256"]:
        raise ConfigError(f"{path}: the bytes differ from those its marker names; use an earlier checkpoint")
    state = json.loads(data)
    if state.get("format") != FORMAT:
        raise ConfigError(f"{path}: format {state.get('format')!r}, expected {FORMAT!r}")
    return state


class Metrics:
    """outputs/metrics.jsonl: one value per line, appended as it becomes known."""

    def __init__(self, path, resumed_step):
        kept = []
        if resumed_step and os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                kept = [line for line in file if line.endswith("\n") and json.loads(line)["step"] <= resumed_step]
        write_atomically(path, "".join(kept).encode())
        self.file = open(path, "a", encoding="utf-8")

    def write(self, step, epoch, split, name, value):
        row = {"time": round(time.time(), 3), "step": step, "epoch": epoch, "split": split, "name": name, "value": value, "unit": ""}
        if not math.isfinite(value):
            row.update(value=None, nonfinite="nan" if math.isnan(value) else "inf")
        self.file.write(json.dumps(row) + "\n")
        self.file.flush()


# The run


def prepare_folders(config):
    for folder in (config.output_dir, config.checkpoint_dir):
        os.makedirs(folder, exist_ok=True)
    present = sorted(os.listdir(config.checkpoint_dir))
    if present and not config.resume:
        raise ConfigError(f"{config.checkpoint_dir}: holds {present[0]}; a start from scratch needs an empty folder, or pass --resume")
    for name in ("predictions-val.jsonl", "predictions-test.jsonl", "summary.json"):
        path = os.path.join(config.output_dir, name)
        if os.path.exists(path):  # what an earlier run said is no longer true of this folder
            os.remove(path)


def identity(config, data):
    """Everything that decides the numbers of a run; a continuation must agree with it."""
    part = {k: v for k, v in vars(config).items() if k not in NOT_IN_IDENTITY}
    content = json.dumps([data[s] for s in ("train", "val", "test")]).encode()
    return {**part, "features": data["features"], "classes": data["classes"], "data": hashlib.sha256(content).hexdigest()}


def start_state(config, data, total_steps):
    rng = random.Random(config.seed)
    model = build_model(len(data["features"]), config.hidden_size, len(data["classes"]), rng)
    return {
        "format": FORMAT, "identity": identity(config, data), "epoch": 0, "step": 0, "best": None,
        "standardisation": {"mean": data["mean"], "std": data["std"]}, "rng": rng.getstate(),
        "model": model, "optimizer": build_optimizer(config, model), "scheduler": build_scheduler(config, total_steps),
    }  # fmt: skip


def resumed_state(config, data):
    state = load_checkpoint(config.resume)
    for name, value in identity(config, data).items():
        if state["identity"][name] != value:
            what = "the rows of the data files" if name == "data" else f"{name}: {state['identity'][name]!r} then, {value!r} now"
            raise ConfigError(f"{config.resume}: belongs to another run ({what}); resume with the same data and parameters")
    later = [p for p in saved_checkpoints(config.checkpoint_dir) if p > checkpoint_path(config.checkpoint_dir, state["epoch"])]
    if later:
        raise ConfigError(f"{later[0]}: later than {config.resume}; resume from the latest, or into another --checkpoint-dir")
    return state


def best_checkpoint(config, best):
    """The best checkpoint's file: in this run's folder, or in that of the run which this one continues."""
    for folder in (config.checkpoint_dir, os.path.dirname(config.resume)):
        path = checkpoint_path(folder, best["epoch"])
        if os.path.exists(path):
            return path
    raise ConfigError(f"{path}: the best checkpoint so far is gone")


def train_epoch(config, data, state, metrics):
    """Trains for one epoch, changes state in place, logs and prints it, and returns the validation loss."""
    rng = random.Random()
    rng.setstate((state["rng"][0], tuple(state["rng"][1]), state["rng"][2]))
    epoch, loss, started = state["epoch"] + 1, 0.0, time.monotonic()
    try:
        for batch in build_dataloader(data["train"], config.batch_size, rng):
            loss += train_step(config, state["model"], state["optimizer"], state["scheduler"], data["train"], batch)
    except (NonFinite, OverflowError) as e:
        metrics.write(state["scheduler"]["step"], epoch, "train", "loss", math.nan)
        raise NonFinite(f"epoch {epoch}, step {state['scheduler']['step']}: {e}") from e
    state.update(epoch=epoch, step=state["scheduler"]["step"], rng=rng.getstate())
    loss /= len(data["train"]["x"])
    val_loss, val_accuracy, _ = run_evaluation(state["model"], data["val"])
    for split, name, value in (("train", "loss", loss), ("val", "loss", val_loss), ("val", "accuracy", val_accuracy)):
        metrics.write(state["step"], epoch, split, name, value)
    seconds = time.monotonic() - started
    print(f"epoch {epoch}/{config.epochs} step {state['step']} train/loss {loss:.5f} val/loss {val_loss:.5f} "
          f"val/accuracy {val_accuracy:.4f} ({seconds:.2f} s)", flush=True)  # fmt: skip
    if not math.isfinite(val_loss):
        raise NonFinite(f"epoch {epoch}: val/loss {val_loss}")
    return val_loss


def run_training(config, data, state, metrics):
    """Trains to the last epoch or until a signal asks to stop; returns whether it was asked to."""
    stop = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda received, _: stop.append(received))
    while state["epoch"] < config.epochs and not stop:
        val_loss = train_epoch(config, data, state, metrics)
        due = state["epoch"] % config.checkpoint_every == 0 or state["epoch"] == config.epochs
        # Only epochs of the cadence may become the best one, so that an interruption does not change the outcome.
        if due and (state["best"] is None or val_loss < state["best"]["value"]):
            state["best"] = {"metric": "val/loss", "value": val_loss, "epoch": state["epoch"], "step": state["step"]}
        if due or stop:
            save_checkpoint(config, state)
    return state["epoch"] < config.epochs


def report_best(config, data, state, metrics):
    """Evaluates the best checkpoint, as read back from its file, on validation and test data."""
    path = best_checkpoint(config, state["best"])
    model = load_checkpoint(path)["model"]
    for split in ("val", "test"):
        part, names = data[split], data["classes"]
        loss, accuracy, predicted = run_evaluation(model, part)
        lines = [json.dumps({"id": i, "target": names[y], "prediction": names[k]}) for i, y, k in zip(part["ids"], part["y"], predicted)]
        write_atomically(os.path.join(config.output_dir, f"predictions-{split}.jsonl"), ("\n".join(lines) + "\n").encode())
    metrics.write(state["best"]["step"], state["best"]["epoch"], "test", "loss", loss)
    metrics.write(state["best"]["step"], state["best"]["epoch"], "test", "accuracy", accuracy)
    print(f"best checkpoint {path}: test/loss {loss:.5f} test/accuracy {accuracy:.4f}", flush=True)


def write_summary(config, state, status, started):
    best = state["best"] and {**state["best"], "checkpoint": best_checkpoint(config, state["best"])}
    summary = {"status": status, "best": best, "epochs": state["epoch"], "steps": state["step"], "seconds": round(time.monotonic() - started, 3)}
    write_json(os.path.join(config.output_dir, "summary.json"), summary)


def main(argv=None):
    started = time.monotonic()
    config = load_config(argv)
    try:
        data = build_dataset(config)
        steps_per_epoch = -(-len(data["train"]["x"]) // config.batch_size)
        prepare_folders(config)
        state = resumed_state(config, data) if config.resume else start_state(config, data, config.epochs * steps_per_epoch)
        metrics = Metrics(os.path.join(config.output_dir, "metrics.jsonl"), state["step"])
        if run_training(config, data, state, metrics):
            write_summary(config, state, "interrupted", started)
            last = checkpoint_path(config.checkpoint_dir, state["epoch"])
            print(f"interrupted after epoch {state['epoch']}; continue with --resume {last}", file=sys.stderr)
            return EXIT_INTERRUPTED
        report_best(config, data, state, metrics)
        write_summary(config, state, "completed", started)
        return 0
    except ConfigError as e:
        print(f"train.py: {e}", file=sys.stderr)
        return EXIT_CONFIG
    except NonFinite as e:
        print(f"train.py: not finite at {e}; lower --learning-rate or set --clip-norm", file=sys.stderr)
        write_summary(config, state, "failed", started)
        return EXIT_NONFINITE


if __name__ == "__main__":
    sys.exit(main())
