"""Writes the checkpoints of this folder and expected.json, what PyTorch itself finds in them.

    python3 make.py          (torch 1.13, numpy)
"""
import collections
import json
import os
import random

import numpy
import torch
from torch import nn

torch.manual_seed(17)
random.seed(17)
numpy.random.seed(17)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(11, 4)
        self.body = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Linear(6, 4))
        self.head = nn.Linear(4, 11, bias=False)
        self.head.weight = self.embed.weight  # tied

    def forward(self, x):
        return self.head(self.body(self.embed(x)))


def flat(value, name=""):
    """Tensors of nested containers, by path, in the order of the file."""
    if isinstance(value, torch.Tensor):
        yield {"name": name, "dtype": str(value.dtype).removeprefix("torch."), "shape": list(value.shape)}
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from flat(inner, f"{name}.{key}" if name else str(key))
    elif isinstance(value, (list, tuple)):
        for i, inner in enumerate(value):
            yield from flat(inner, f"{name}.{i}" if name else str(i))
    elif isinstance(value, nn.Module):
        yield from flat(value.state_dict(), name)


net = Net()
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2)
for _ in range(3):
    loss = net(torch.randint(0, 11, (8,))).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()

parameters = sum(t.numel() for t in {t.data_ptr(): t for t in net.state_dict().values()}.values())
files = {
    "full.pt": {
        "model": net.state_dict(), "optimizer": optimizer.state_dict(), "scheduler": scheduler.state_dict(), "epoch": 3, "global_step": 300,
        "torch_rng_state": torch.get_rng_state(), "numpy_rng_state": numpy.random.get_state(), "python_rng_state": random.getstate(),
    },
    "weights.pt": collections.OrderedDict(
        a=torch.zeros(2, 3, dtype=torch.float16), b=torch.zeros(5, dtype=torch.bfloat16), c=torch.tensor(7), d=torch.zeros(3, dtype=torch.bool),
        e=torch.arange(12, dtype=torch.int32).reshape(3, 4).t()[1:], f=torch.zeros(2, 0), g=nn.Parameter(torch.zeros(1, dtype=torch.float64)),
        h=torch.zeros(2, dtype=torch.complex64),
    ),
    "module.pt": net,
    "optimizer.pt": optimizer.state_dict(),
    "gan.pt": {"generator": {"w": torch.zeros(2)}, "opt_g": torch.optim.SGD([torch.zeros(2, requires_grad=True)], lr=0.1).state_dict(), "epoch": 1},
}
expected = {"full.pt parameters": parameters}
for name, value in files.items():
    torch.save(value, name)
    expected[name] = list(flat(torch.load(name)))
torch.save(files["weights.pt"], "protocol4.pt", pickle_protocol=4)
expected["protocol4.pt"] = list(flat(torch.load("protocol4.pt")))
expected["sgd-epoch17.pt"] = list(flat(torch.load("sgd-epoch17.pt")))


class Evil:
    def __reduce__(self):
        return os.system, ("echo never",)


torch.save({"model": {"w": torch.zeros(2)}, "x": Evil()}, "evil.pt")
whole = open("full.pt", "rb").read()
open("cut.pt", "wb").write(whole[: len(whole) * 6 // 10])

# safetensors as its README describes it: length, JSON header, bytes.
header, data = {"__metadata__": {"format": "pt", "step": "300"}}, b""
for key, tensor in net.state_dict().items():
    raw = tensor.numpy().tobytes()
    kind = {"float32": "F32", "int64": "I64"}[str(tensor.dtype).removeprefix("torch.")]
    header[key] = {"dtype": kind, "shape": list(tensor.shape), "data_offsets": [len(data), len(data) + len(raw)]}
    data += raw
text = json.dumps(header).encode()
open("model.safetensors", "wb").write(len(text).to_bytes(8, "little") + text + data)
with open("expected.json", "w") as out:
    json.dump(expected, out, indent=1)
    out.write("\n")
