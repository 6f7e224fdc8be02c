#!/bin/bash
# Makes the logs in made/ again by running things that fail. Tests read the logs and never run this.
# Needs Debian 12, root (a small tmpfs, a memory cgroup of version 1, another user) and
#   apt-get install --no-install-recommends python3-torch python3-numpy util-linux
# Each case leaves NAME.err and, where it printed something, NAME.out in made/, and "NAME CODE" in made/exits.
set -u
made=$(cd "$(dirname "$0")" && pwd)/made
python=/usr/bin/python3
work=/tmp/train # stands in the logs; it must be readable by everyone
[ -e $work ] && { echo "$work exists" >&2; exit 1; }
mkdir -p "$made" $work && cd $work
rm -f "$made"/*.err "$made"/*.out
: >"$made/exits"
unset PYTHONPATH PYTHONUNBUFFERED
export OMP_NUM_THREADS=1 LC_ALL=C.UTF-8

# try NAME COMMAND... keeps what the command says and how it ends.
try() {
	local name=$1 code
	shift
	"$@" >"$made/$name.out" 2>"$made/$name.err" </dev/null
	code=$?
	echo "$name $code" >>"$made/exits"
	[ -s "$made/$name.out" ] || rm "$made/$name.out"
	[ -s "$made/$name.err" ] || rm "$made/$name.err"
}

# -- imports
try module_missing_m $python -m no_such_trainer
try submodule_missing $python -c 'import numpy.no_such_part'
mkdir shadow_package shadow_stdlib shadow_attribute
echo 'import torch.nn as nn' >shadow_package/train.py
echo 'answer = 42' >shadow_package/torch.py
try shadowed_package $python shadow_package/train.py
echo 'import torch' >shadow_stdlib/train.py
printf 'import torch\nlevel = 1\n' >shadow_stdlib/logging.py
try shadowed_stdlib $python shadow_stdlib/train.py
printf 'import random\n\n\ndef main():\n    random.seed(7)\n\n\nmain()\n' >shadow_attribute/train.py
echo 'values = [1, 2]' >shadow_attribute/random.py
try shadowed_attribute $python shadow_attribute/train.py
echo 'from os import no_such_name' >name_missing.py
try name_missing $python name_missing.py
try library_missing $python -c 'import ctypes; ctypes.CDLL("libcudart.so.11.0")'

# -- files and permissions
cat >read_data.py <<'PY'
import numpy as np


def load(path):
    return np.loadtxt(path, delimiter=",")


load("data/train.csv")
PY
try file_missing $python read_data.py
try script_missing $python no_such_train.py
mkdir closed && echo 1 >closed/labels.csv && chmod 700 closed
cat >read_closed.py <<'PY'
def labels(path):
    with open(path) as file:
        return file.read()


labels("/tmp/train/closed/labels.csv")
PY
try permission setpriv --reuid 65534 --regid 65534 --clear-groups $python read_closed.py
try permission_shell setpriv --reuid 65534 --regid 65534 --clear-groups bash -c 'cat closed/labels.csv'
printf '#!/bin/sh\necho train\n' >run.sh
try not_executable bash -c './run.sh'
echo '#!/no/such/interpreter' >bad_interpreter.sh && chmod +x bad_interpreter.sh
try interpreter_missing bash -c './bad_interpreter.sh'
try command_missing_bash bash -c 'torchrunn --nproc_per_node=2 train.py'
try command_missing_sh sh -c 'torchrunn --nproc_per_node=2 train.py'
try command_missing_env env torchrunn train.py

# -- a full disk, real: a tmpfs of 1 MB
mkdir small && mount -t tmpfs -o size=1m tmpfs small
cat >save.py <<'PY'
import json
import sys

import torch


def save_checkpoint(path):
    torch.save({"model": torch.ones(1_000_000)}, path)


def write_metrics(path):
    with open(path, "w") as file:
        for step in range(1_000_000):
            file.write(json.dumps({"step": step, "loss": 1.0}) + "\n")


print("epoch 0 loss 0.91", flush=True)
{"torch": save_checkpoint, "text": write_metrics}[sys.argv[1]](sys.argv[2])
PY
try disk_full_torch $python save.py torch small/epoch-0001.pt
rm -f small/*
try disk_full_text $python save.py text small/metrics.jsonl
rm -f small/*
try disk_full_shell bash -c 'cp /usr/bin/python3.11 small/model && echo copied'
umount small

# -- memory of the host
cat >big.py <<'PY'
import sys

import numpy as np
import torch


def allocate(library):
    return torch.ones(100_000_000_000_000) if library == "torch" else np.ones((1_000_000, 1_000_000, 100))


allocate(sys.argv[1])
PY
try memory_numpy $python big.py numpy
try memory_torch $python big.py torch
cat >leak.py <<'PY'
held = []
step = 0
while True:
    held.append(bytearray(10_000_000))
    step += 1
    print("step", step, flush=True)
PY
group=/sys/fs/cgroup/memory/train-logs
mkdir $group && echo 120M >$group/memory.limit_in_bytes
try memory_cgroup bash -c "echo \$\$ >$group/cgroup.procs; $python leak.py; exit \$?"
rmdir $group
try memory_forks bash -c 'ulimit -v 60000; exec /usr/bin/python3 -c "import os; bytearray(10**9)"'

# -- the accelerator that is not there
try cuda_not_compiled $python -c 'import torch; torch.ones(2).cuda()'
cat >load_cuda.py <<'PY'
import torch

# A checkpoint that says that its tensors were on the first GPU.
torch.serialization.location_tag = lambda storage: "cuda:0"
torch.save({"model": torch.ones(3)}, "cuda.pt")


def resume(path):
    return torch.load(path)


resume("cuda.pt")
PY
try cuda_checkpoint $python load_cuda.py
cat >gpu_memory.py <<'PY'
import torch


def step(batch):
    # No GPU here: the class is PyTorch's own, the sentence is that of its CUDACachingAllocator.
    raise torch.cuda.OutOfMemoryError(
        "CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 79.15 GiB total capacity; 76.01 GiB already allocated; "
        "1.20 GiB free; 77.10 GiB reserved in total by PyTorch) If reserved memory is >> allocated memory try setting "
        "max_split_size_mb to avoid fragmentation.  See documentation for Memory Management and PYTORCH_CUDA_ALLOC_CONF")


step(64)
PY
try gpu_memory_raised $python gpu_memory.py

# -- shapes
cat >shapes.py <<'PY'
import sys

import numpy as np
import torch
import torch.nn as nn


class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first = nn.Linear(width, 4)

    def forward(self, x):
        return self.first(x)


def linear():
    Net(3)(torch.ones(2, 5))


def view():
    torch.ones(2, 5).view(3, 4)


def loss():
    nn.functional.cross_entropy(torch.ones(4, 3), torch.zeros(5, dtype=torch.long))


def broadcast():
    np.ones((3, 4)) + np.ones((5, 4))


def state_dict():
    Net(3).load_state_dict(Net(5).state_dict())


globals()[sys.argv[1]]()
PY
for kind in linear view loss broadcast state_dict; do try shape_$kind $python shapes.py $kind; done

# -- loss that is not finite
cat >diverge.py <<'PY'
import sys

import torch


def train(check):
    w = torch.ones(3, requires_grad=True)
    for step in range(40):
        loss = (w * 1e9).square().sum()
        (grad,) = torch.autograd.grad(loss, w)
        w = (w - 1e9 * grad).detach().requires_grad_()
        print(f"step {step} loss {loss.item():.4g}", flush=True)
        if check == "raise" and not torch.isfinite(loss):
            raise ValueError(f"loss is {loss.item()} at step {step}, stopping training")
    if check == "exit":
        sys.exit(65)


def anomaly():
    with torch.autograd.set_detect_anomaly(True):
        x = torch.zeros(2, requires_grad=True)
        (torch.sqrt(x) * 0).sum().backward()


anomaly() if sys.argv[1] == "anomaly" else train(sys.argv[1])
PY
for kind in raise exit anomaly; do try loss_$kind $python diverge.py $kind; done

# -- time and signals
try timeout_command timeout 1 sleep 30
cat >crash.py <<'PY'
import os
import signal
import sys


def native_call(name):
    os.kill(os.getpid(), getattr(signal, name))


print("epoch 0", flush=True)
native_call(sys.argv[1])
PY
try signal_segv bash -c "$python crash.py SIGSEGV; exit \$?"
try signal_segv_handler $python -X faulthandler crash.py SIGSEGV
try signal_kill bash -c "$python crash.py SIGKILL; exit \$?"
try signal_term bash -c "$python crash.py SIGTERM; exit \$?"
try signal_abort bash -c "$python crash.py SIGABRT; exit \$?"
try signal_int $python crash.py SIGINT

# -- arguments
cat >arguments.py <<'PY'
import argparse

parser = argparse.ArgumentParser()
parser.add_argument("--data", required=True)
parser.add_argument("--epochs", type=int, default=3, help="how many passes over the data")
parser.add_argument("--optimizer", choices=["adamw", "sgd"], default="adamw")
parser.parse_args()
PY
try arguments_unknown $python arguments.py --data d --learning_rate 1
try arguments_missing $python arguments.py
try arguments_choice $python arguments.py --data d --optimizer lion
try arguments_type $python arguments.py --data d --epochs many

# -- other exceptions
cat >chained.py <<'PY'
import sys


def read(text):
    try:
        return int(text)
    except ValueError as error:
        raise RuntimeError("the configuration can't be used") from error


def look_up(table, name):
    try:
        return table[name]
    except KeyError:
        return table.size


{"from": lambda: read("ten"), "during": lambda: look_up({}, "lr")}[sys.argv[1]]()
PY
try chained_from $python chained.py from
try chained_during $python chained.py during
printf 'def main():\n    lr = = 0.1\n' >syntax.py
try syntax_error $python syntax.py
printf 'def main():\nlr = 0.1\n' >indentation.py
try indentation_error $python indentation.py
printf 'import sys\nsys.exit("no configuration for experiment 7")\n' >says.py
try exit_message $python says.py
printf 'def depth(n):\n    return depth(n + 1)\n\n\ndepth(0)\n' >recursion.py
try recursion $python recursion.py
cat >progress.py <<'PY'
import sys

for step in range(2000):
    sys.stderr.write(f"\rEpoch 1: {step / 20:5.1f}% |{'#' * (step // 100):20}| {step}/2000, loss=0.4")
raise KeyError("eval_loss")
PY
try progress_bar $python progress.py
cat >handled.py <<'PY'
import logging

try:
    open("cache.bin")
except OSError:
    logging.exception("no cache, building it")
for step in range(300):
    logging.warning("step %d loss 0.5", step)
raise ZeroDivisionError("no samples in the last batch")
PY
try handled_before $python handled.py
cat >group.py <<'PY'
def read(shard):
    raise ValueError(f"shard {shard} is empty")


errors = []
for shard in range(2):
    try:
        read(shard)
    except ValueError as error:
        errors.append(error)
raise ExceptionGroup("2 shards failed", errors)
PY
try exception_group $python group.py
head -c 3000 /dev/urandom >garbage.pt
cat >resume.py <<'PY'
import sys

import torch

torch.save({"model": torch.ones(10_000)}, "whole.pt")
with open("whole.pt", "rb") as whole, open("short.pt", "wb") as short:
    short.write(whole.read(20_000))


def resume(path):
    return torch.load(path, map_location="cpu")


resume(sys.argv[1])
PY
try checkpoint_short $python resume.py short.pt
try checkpoint_garbage $python resume.py garbage.pt
: >empty.pt
try checkpoint_empty $python resume.py empty.pt

# -- several processes
cat >workers.py <<'PY'
from torch.utils.data import DataLoader, Dataset


class Shards(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        return self.decode(index)

    def decode(self, index):
        raise ValueError(f"record {index} has 3 fields, expected 4")


for _ in DataLoader(Shards(), num_workers=1):
    pass
PY
try loader_worker $python workers.py
cat >loader_killed.py <<'PY'
import os
import signal

from torch.utils.data import DataLoader, Dataset


class Shards(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        os.kill(os.getpid(), signal.SIGKILL)


for _ in DataLoader(Shards(), num_workers=1):
    pass
PY
try loader_killed $python loader_killed.py
cat >spawn.py <<'PY'
import torch.multiprocessing as mp


def worker(rank):
    if rank == 1:
        raise ValueError(f"rank {rank} has no shard")


if __name__ == "__main__":
    mp.spawn(worker, nprocs=2)
PY
try spawned $python spawn.py
cat >pool.py <<'PY'
from multiprocessing import Pool


def parse(row):
    return float(row)


if __name__ == "__main__":
    with Pool(1) as pool:
        pool.map(parse, ["1.5", "n/a"])
PY
try pool $python pool.py
cat >ddp.py <<'PY'
import os
import signal
import sys
import time

import torch.distributed as dist
from torch.distributed.elastic.multiprocessing.errors import record


def shard(rank, kind):
    if rank != 1:
        time.sleep(3 if kind == "kill" else 0)
        return
    if kind == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    raise ValueError(f"rank {rank}: shard is empty")


def main():
    dist.init_process_group("gloo")
    print("rank", dist.get_rank(), "of", dist.get_world_size(), flush=True)
    shard(dist.get_rank(), sys.argv[1])
    dist.barrier()


(record(main) if sys.argv[1] == "record" else main)()
PY
for kind in raise record kill; do
	try torchrun_$kind torchrun --master_addr 127.0.0.1 --master_port 29517 --nproc_per_node=2 -r 1 -t 1 ddp.py $kind
done
try torchrun_tee torchrun --master_addr 127.0.0.1 --master_port 29517 --nproc_per_node=2 -r 2 -t 2 ddp.py raise
rm -rf $work
