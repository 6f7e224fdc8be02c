#!/usr/bin/env python3
"""Reads /home/me/data/train.csv unless told otherwise."""
import argparse
import h5py
import pandas as pd
import subprocess
import sys

# The old place was /data/project/train.csv.
ROOT = "/home/me/project"  # want: warning absolute_path
WINDOWS = "C:\\Users\\me\\data.csv"  # want: warning absolute_path
SHARE = r"\\server01\share\data"  # want: warning absolute_path
NOTHING = "/dev/null"
SYSTEM = ["/proc/meminfo", "/etc/hosts", "/usr/bin/env", "/tmp"]
ROUTE = "/api/v1/train"
RATIO = "s/m/h"
PATTERN = r"a:/b"
DRIVE = "e:/data/set.csv"  # want: warning absolute_path


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--train-data", default="/data/project/train.csv", help="such as /data/project/train.csv")
    parser.add_argument("--cache", default="/scratch/me/cache")  # want: warning absolute_path
    parser.add_argument("--val-data", default="data/val.csv")
    return parser.parse_args()


def main():
    """/home/me is where it was written."""
    args = parse()
    table = pd.read_csv(f"/mnt/archive/{args.cache}/table.csv")  # want: warning absolute_path
    relative = f"{ROOT}/data/x"
    with h5py.File("data.h5") as file:
        x = file["/data/x"][:]
        file.create_dataset("/data/y", data=x)
    if not len(table):
        print("/data/project is empty", file=sys.stderr)
    assert not relative.startswith("/home/me/")
    subprocess.run(["/bin/true"], stdout=open("/dev/null", "w"))
    open("/tmp/metrics.json", "w").write("{}")  # want: warning absolute_path
    pd.read_csv("data/all.csv")  # want: warning data_named
