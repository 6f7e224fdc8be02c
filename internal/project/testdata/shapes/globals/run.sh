#!/bin/sh
torchrun --standalone --nproc_per_node=4 train.py --batch_size=8 --max_iters=2000
