"""Train a small regressor: python plain.py --train data/train.csv --val data/val.csv"""
import argparse
import csv, json

import torch
from torch.utils.data import DataLoader


def get_args():
    parser = argparse.ArgumentParser(description="it's plain")
    parser.add_argument("--train", required=True, help="training table")
    parser.add_argument('--val', type=str, default=None)
    parser.add_argument("--target", default="sst")
    parser.add_argument("-e", "--epochs", type=int, default=20)
    parser.add_argument("--lr", type=float, default=3e-4, help='step' " size")
    parser.add_argument("--batch-size", type=int, default=2 * 16)
    parser.add_argument("--shuffle", action="store_true")
    parser.add_argument("--resume", default="", help="checkpoint to go on from")
    parser.add_argument("--out", default="outputs")
    return parser.parse_args()


def main():
    args = get_args()
    optimizer = torch.optim.AdamW([], lr=args.lr)
    for epoch in range(args.epochs):
        loss = 0.0
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
