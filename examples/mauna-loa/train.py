#!/usr/bin/env python3
"""Forecasts the CO2 of the next month from the months before it. Python standard library only.

Reads three CSV files that follow each other in time, standardises with the mean and deviation of the training file, and
trains a network with one tanh layer by Adam on windows of past months. A month of the validation or test file is
forecast from the measured months before it, wherever they stand.

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
    p.add_argument("--target", default="co2_ppm", help="column that is forecast")
    p.add_argument("--id-column", default="month", help="column that names a row and orders the rows")
    p.add_argument("--output-dir", default="outputs", help="folder for metrics, predictions and summary")
    p.add_argument("--checkpoint-dir", default="checkpoints", help="folder for checkpoints; empty unless --resume is given")
    p.add_argument("--history", type=int, default=24, help="months that a forecast looks back")
    p.add_argument("--hidden-size", type=int, default=8, help="units of the hidden layer")
    p.add_argument("--epochs", type=int, default=60, help="passes over the training file")
    p.add_argument("--batch-size", type=int, default=16, help="windows per optimizer step")
    p.add_argument("--learning-rate", type=float, default=0.01, help="learning rate")
    p.add_argument("--optimizer", default="adam", choices=["adam"], help="Adam with the betas of its paper")
    p.add_argument("--scheduler", default="none", choices=["none"], help="the learning rate is constant")
    p.add_argument("--loss", default="mse", choices=["mse"], help="loss that is minimised")
    p.add_argument("--seed", type=int, default=17, help="seed of initial weights and window order")
    p.add_argument("--checkpoint-every", type=int, default=5, help="epochs between checkpoints")
    p.add_argument("--resume", default="", help="checkpoint to continue from, exactly")
    p.add_argument("--precision", default="fp64", choices=["fp64"], help="arithmetic of Python floats")
    config = p.parse_args(argv)
    for name in ("history", "hidden_size", "epochs", "batch_size", "checkpoint_every"):
        if getattr(config, name) < 1:
            p.error(f"--{name.replace('_', '-')} must be at least 1, got {getattr(config, name)}")
    if not 0 < config.learning_rate < math.inf:
        p.error(f"--learning-rate must be above 0, got {config.learning_rate}")
    return config


# Data


def read_series(path, config):
    """Returns [(id, value)] of one file, in the order of the file."""
    try:
        with open(path, newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
    except OSError as e:
        raise ConfigError(f"{path}: {e.strerror}; pass an existing CSV file") from e
    try:
        series = [(row[config.id_column], float(row[config.target])) for row in rows]
    except (KeyError, ValueError, TypeError) as e:
        raise ConfigError(f"{path}: {e!r}; columns {config.id_column} and {config.target} are needed, with a number in every row") from e
    if [name for name, _ in series] != sorted(name for name, _ in series):
        raise ConfigError(f"{path}: the rows are not in the order of {config.id_column}")
    return series


def build_dataset(config):
    """Cuts windows: the standardised months before, and the month itself. The first months of the training file have none."""
    parts = {"train": read_series(config.train_data, config), "val": read_series(config.val_data, config), "test": read_series(config.test_data, config)}
    values = [v for _, v in parts["train"]]
    if len(values) <= config.history:
        raise ConfigError(f"{config.train_data}: {len(values)} months, a window needs {config.history + 1}")
    mean = sum(values) / len(values)
    std = math.sqrt(sum((v - mean) ** 2 for v in values) / len(values)) or 1.0
    data, past = {"mean": mean, "std": std}, []
    for split, series in parts.items():
        data[split] = []
        for name, value in series:
            scaled = (value - mean) / std
            if len(past) >= config.history:
                data[split].append((name, past[-config.history :], scaled))
            past.append(scaled)
    return data


# Model


def build_model(config, rng):
    """Rows of weights, the bias last: one tanh layer, then a linear unit."""

    def rows(n_in, n_out):
        bound = math.sqrt(6.0 / (n_in + n_out))
        return [[rng.uniform(-bound, bound) for _ in range(n_in)] + [0.0] for _ in range(n_out)]

    return {"hidden": rows(config.history, config.hidden_size), "output": rows(config.hidden_size, 1)}


def forward(model, x):
    hidden = [math.tanh(sum(w * v for w, v in zip(row, x)) + row[-1]) for row in model["hidden"]]
    out = model["output"][0]
    return hidden, sum(w * h for w, h in zip(out, hidden)) + out[-1]


def build_optimizer(model):
    zeros = {name: [[0.0] * len(row) for row in rows] for name, rows in model.items()}
    return {"m": zeros, "v": json.loads(json.dumps(zeros))}


def train_step(config, state, batch):
    """Does one step of Adam on a batch of windows and returns their summed squared error."""
    model, optimizer, loss = state["model"], state["optimizer"], 0.0
    gradient = {name: [[0.0] * len(row) for row in rows] for name, rows in model.items()}
    out = model["output"][0]
    for _, x, y in batch:
        hidden, predicted = forward(model, x)
        delta = 2 * (predicted - y) / len(batch)
        loss += (predicted - y) ** 2
        for k, h in enumerate(hidden):
            gradient["output"][0][k] += delta * h
            inner, row = delta * out[k] * (1 - h * h), gradient["hidden"][k]
            for j, v in enumerate(x):
                row[j] += inner * v
            row[-1] += inner
        gradient["output"][0][-1] += delta
    state["step"] += 1
    t = state["step"]
    for name, rows in model.items():
        for w, g, m, v in zip(rows, gradient[name], optimizer["m"][name], optimizer["v"][name]):
            for j in range(len(w)):
                m[j] = 0.9 * m[j] + 0.1 * g[j]
                v[j] = 0.999 * v[j] + 0.001 * g[j] * g[j]
                w[j] -= config.learning_rate * (m[j] / (1 - 0.9**t)) / (math.sqrt(v[j] / (1 - 0.999**t)) + 1e-8)
    return loss


def run_evaluation(model, data, split):
    """Returns the root mean square and the mean absolute error in ppm, and the forecasts."""
    forecasts = [(name, y * data["std"] + data["mean"], forward(model, x)[1] * data["std"] + data["mean"]) for name, x, y in data[split]]
    errors = [p - y for _, y, p in forecasts]
    return math.sqrt(sum(e * e for e in errors) / len(errors)), sum(map(abs, errors)) / len(errors), forecasts


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
        rmse, mae, _ = run_evaluation(state["model"], data, "val")
        for split, name, value, unit in (("train", "loss", loss / len(order), ""), ("val", "rmse", rmse, "ppm"), ("val", "mae", mae, "ppm")):
            log(config, state, split, name, value, unit)
        print(f"epoch {state['epoch']}/{config.epochs} step {state['step']} train/loss {loss / len(order):.6f} val/rmse {rmse:.4f} val/mae {mae:.4f}", flush=True)
        if not math.isfinite(loss + rmse):
            raise FloatingPointError(f"epoch {state['epoch']}: train/loss {loss}, val/rmse {rmse}")
        due = state["epoch"] % config.checkpoint_every == 0 or state["epoch"] == config.epochs
        if due and (state["best"] is None or rmse < state["best"]["value"]):
            state["best"] = {"metric": "val/rmse", "value": rmse, "epoch": state["epoch"], "step": state["step"]}
        if due or stop:
            save_checkpoint(config, state)
    return state["epoch"] < config.epochs


def report_best(config, data, state):
    """Forecasts validation and test with the best checkpoint, as read back from its file."""
    path = checkpoint_path(config.checkpoint_dir, state["best"]["epoch"])
    model = load_checkpoint(path)["model"]
    at = {"step": state["best"]["step"], "epoch": state["best"]["epoch"]}
    for split in ("val", "test"):
        rmse, mae, forecasts = run_evaluation(model, data, split)
        lines = [json.dumps({"id": name, "target": round(y, 4), "prediction": p}) for name, y, p in forecasts]
        write_atomically(os.path.join(config.output_dir, f"predictions-{split}.jsonl"), ("\n".join(lines) + "\n").encode())
    log(config, at, "test", "rmse", rmse, "ppm")
    log(config, at, "test", "mae", mae, "ppm")
    print(f"best checkpoint {path}: test/rmse {rmse:.4f} test/mae {mae:.4f} ppm", flush=True)


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
            model = build_model(config, rng)
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
