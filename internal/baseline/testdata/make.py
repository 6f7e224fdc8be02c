"""Writes the files of this folder and expected.json: the scores of every baseline, computed here with numpy and the
standard library alone, apart from the Go code.

    python3 make.py ../../../examples/breast-cancer/data/wdbc.csv
"""
import csv
import datetime
import json
import math
import random
import statistics
import sys

import numpy as np

expected = {}


def write(name, header, rows):
    with open(name, "w", newline="") as out:
        csv.writer(out, lineterminator="\n").writerows([header, *rows])


def put(task, name, metric, value, n):
    expected.setdefault(task, {})[f"{name} {metric}"] = {"value": value, "n": n}


def regression(task, name, targets, predictions):
    n = len(targets)
    errors = [p - t for p, t in zip(predictions, targets)]
    mean = sum(targets) / n
    squares = sum(e * e for e in errors)
    put(task, name, "rmse", math.sqrt(squares / n), n)
    put(task, name, "mae", sum(map(abs, errors)) / n, n)
    put(task, name, "r2", 1 - squares / sum((t - mean) ** 2 for t in targets), n)


def classification(task, name, targets, predictions):
    n = len(targets)
    put(task, name, "accuracy", sum(p == t for p, t in zip(predictions, targets)) / n, n)
    scores = []
    for label in sorted(set(targets) | set(predictions)):
        hit = sum(p == t == label for p, t in zip(predictions, targets))
        both = predictions.count(label) + targets.count(label)
        scores.append(2 * hit / both)
    put(task, name, "f1_macro", sum(scores) / len(scores), n)


def standardised(train, test):
    mean, std = np.nanmean(train, axis=0), np.nanstd(train, axis=0)
    keep = std > 0
    return tuple(np.nan_to_num((x[:, keep] - mean[keep]) / std[keep]) for x in (train, test))


def nearest(train, test):
    return [int(np.argmin(((train - row) ** 2).sum(axis=1))) for row in test]


def ridge(train, y, test):
    """Centred, so that the intercept is free; another way to the same numbers as the Go code's extra column."""
    mean, level = train.mean(axis=0), y.mean(axis=0)
    x = train - mean
    weights = np.linalg.solve(x.T @ x + np.eye(x.shape[1]), x.T @ (y - level))
    return (test - mean) @ weights + level


rows = list(csv.reader(open(sys.argv[1])))
header, rows = rows[0], rows[1:]
train, test = [r for i, r in enumerate(rows) if i % 5], [r for i, r in enumerate(rows) if i % 5 == 0]
keep = [0, 1, 2, 3, 8, 21, 22, 31]
names = [header[i] for i in keep]
cut = lambda part: [[r[i] for i in keep] for r in part]
write("wdbc-train.csv", names, cut(train))
write("wdbc-test.csv", names, cut(test))

# classification: diagnosis from the numbers
numbers = lambda part, columns: np.array([[float(r[i]) for i in columns] for r in part])
x, z = standardised(numbers(train, keep[1:-1]), numbers(test, keep[1:-1]))
labels, truth = [r[-1] for r in train], [r[-1] for r in test]
majority = statistics.mode(labels)
share = {name: labels.count(name) / len(labels) for name in set(labels)}
classification("classes", "majority_class", truth, [majority] * len(truth))
put("classes", "majority_class", "logloss", -sum(math.log(share[t]) for t in truth) / len(truth), len(truth))
classification("classes", "nearest_neighbour", truth, [labels[i] for i in nearest(x, z)])
order = sorted(share, key=lambda name: -share[name])
outputs = ridge(x, np.array([[float(l == name) for name in order] for l in labels]), z)
classification("classes", "ridge", truth, [order[int(np.argmax(row))] for row in outputs])

# regression: worst_radius from the others, the diagnosis as a category, some values missing
random.seed(17)
holes = lambda part: [[("NA" if 0 < j < 5 and random.random() < 0.05 else v) for j, v in enumerate(r)] for r in cut(part)]
train, test = holes(train), holes(test)
write("holes-train.csv", names, train)
write("holes-test.csv", names, test)
value = lambda text: float("nan") if text == "NA" else float(text)
columns = [1, 2, 3, 4, 6]
x, z = standardised(np.array([[value(r[i]) for i in columns] for r in train]), np.array([[value(r[i]) for i in columns] for r in test]))
levels = sorted({r[7] for r in train})
x = np.hstack([x, [[float(r[7] == level) for level in levels] for r in train]])
z = np.hstack([z, [[float(r[7] == level) for level in levels] for r in test]])
y, truth = [float(r[5]) for r in train], [float(r[5]) for r in test]
regression("holes", "mean", truth, [statistics.fmean(y)] * len(truth))
regression("holes", "median", truth, [statistics.median(y)] * len(truth))
regression("holes", "nearest_neighbour", truth, [y[i] for i in nearest(x, z)])
regression("holes", "ridge", truth, list(ridge(x, np.array(y), z)))

# forecast: two stations, monthly means of ten years with a season; the last two years are the test part
series = []
for station, level in (("north", 4.0), ("south", 16.0)):
    for month in range(120):
        t = level + 8 * math.sin(2 * math.pi * (month % 12) / 12) + random.gauss(0, 1.5)
        series.append([station, datetime.date(2010 + month // 12, month % 12 + 1, 1).isoformat(), round(t, 2)])
train, test = [r for r in series if r[1] < "2018"], [r for r in series if r[1] >= "2018"]
random.shuffle(train)
random.shuffle(test)
write("months-train.csv", ["station", "date", "sst"], train)
write("months-test.csv", ["station", "date", "sst"], test)
truth = [r[2] for r in test]
for horizon in (1, 3):
    predictions = []
    for station, date, _ in test:
        own = sorted((d, v) for s, d, v in series if s == station)
        at = [d for d, _ in own].index(date)
        predictions.append(own[at - horizon][1])
    regression(f"months {horizon}", "persistence", truth, predictions)
    climate = [statistics.fmean(v for s, d, v in train if s == station and d[5:7] == date[5:7]) for station, date, _ in test]
    regression(f"months {horizon}", "seasonal_climatology", truth, climate)
    regression(f"months {horizon}", "mean", truth, [statistics.fmean(r[2] for r in train)] * len(truth))
    regression(f"months {horizon}", "median", truth, [statistics.median(r[2] for r in train)] * len(truth))

with open("expected.json", "w") as out:
    json.dump(expected, out, indent=1)
    out.write("\n")
