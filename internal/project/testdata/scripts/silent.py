import argparse, os
import numpy as np
import torch

parser = argparse.ArgumentParser()
parser.add_argument("--resume", default=None)
parser.add_argument("--ckpt-dir", default="checkpoints")
parser.add_argument("--pretrained", default="weights/base.pt")
args = parser.parse_args()

model, optimizer = build()
path = os.path.join(args.ckpt_dir, "last.pt")
if os.path.exists(path):
    print("found one")
    model.load_state_dict(torch.load(path))

if args.resume and os.path.isfile(args.resume):
    model.load_state_dict(torch.load(args.resume))

if args.resume:
    if os.path.exists(path):
        model.load_state_dict(torch.load(path))

if os.path.exists(args.pretrained):
    model.load_state_dict(torch.load(args.pretrained))

try:
    state = torch.load("checkpoint.pth")
except FileNotFoundError:
    state = None

try:
    state = torch.load("checkpoint.pth")
except FileNotFoundError:
    raise SystemExit("no checkpoint")

step = torch.load("last.pt")["step"] if os.path.exists(path) else 0

resumed_step = 3 if args.resume else 0
if resumed_step and os.path.exists("last.ckpt"):
    state = torch.load("last.ckpt")

if os.path.exists("cache.npy"):
    table = np.load("cache.npy")

if not os.path.exists("static.npy"):
    static = np.random.rand(4, 4)
    np.save("static.npy", static)

if os.path.isfile("mask.npy"):
    mask = np.load("mask.npy")
else:
    mask = np.random.normal(size=(4, 4))

if not os.path.exists(args.ckpt_dir):
    os.makedirs(args.ckpt_dir)

for epoch in range(10):
    optimizer.step()
