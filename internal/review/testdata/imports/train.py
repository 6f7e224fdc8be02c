"""Imports of every kind. What is wanted stands behind the line."""
from __future__ import annotations

import argparse
import contextlib
import json, nosuchpackage  # want: error import_unresolved nosuchpackage
import os.path
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING

import model
import model.blocks as blocks
import model.decoder  # want: error import_unresolved model.decoder
from model import Net, heads
from model.blocks import Block
from model.missing import Nothing  # want: error import_unresolved model.missing
from helpers import load, save
from helpers.io import read  # want: error import_unresolved helpers.io

if TYPE_CHECKING:
    import pandas_stubs_nobody_has

try:
    import orjson_of_another_world
except ImportError:
    orjson_of_another_world = None

try:
    import cupy_of_another_world as xp
except ModuleNotFoundError:
    import json_of_another_world as xp

with contextlib.suppress(ImportError):
    import amp_of_another_world

if os.environ.get("WITH_WANDB"):
    import wandb_of_another_world  # want: warning import_unresolved wandb_of_another_world

match os.name:
    case "nowhere":
        import winreg_of_another_world  # want: warning import_unresolved winreg_of_another_world

if __name__ == "__main__":
    import needed_of_another_world  # want: error import_unresolved needed_of_another_world


def export():
    import onnx_of_another_world  # want: warning import_unresolved onnx_of_another_world

    return onnx_of_another_world, argparse, json, os, ET, nosuchpackage
