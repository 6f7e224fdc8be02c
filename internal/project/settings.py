"""Says which values a training script sets, and where: read with ast, never run. Runs on Python 3.8 and later.

ASK is {"files": [[path, text], …]}. Prints one line of JSON: {"version": …, "files": {path: {"arguments": […], "settings": […],
"hydra": {…} or null, "calls": […], "error": …}}}. Places are [line, column, end line, end column], columns in bytes.
"""
import ast
import json
import sys

OPTIMIZERS = {"SGD", "Adam", "AdamW", "Adamax", "NAdam", "RAdam", "RMSprop", "Adagrad", "Adadelta", "LBFGS", "Rprop", "ASGD", "Lion", "Lamb", "LAMB", "Adafactor",
              "FusedAdam", "DeepSpeedCPUAdam", "AdamW8bit", "Adam8bit"}
SCHEDULERS = {"StepLR", "MultiStepLR", "ExponentialLR", "CosineAnnealingLR", "CosineAnnealingWarmRestarts", "ReduceLROnPlateau", "OneCycleLR", "LinearLR", "ConstantLR",
              "LambdaLR", "PolynomialLR", "CyclicLR", "SequentialLR", "CosineDecay", "ExponentialDecay", "get_linear_schedule_with_warmup", "get_cosine_schedule_with_warmup"}
LOSSES = {"CrossEntropyLoss", "MSELoss", "L1Loss", "SmoothL1Loss", "HuberLoss", "BCELoss", "BCEWithLogitsLoss", "NLLLoss", "KLDivLoss", "CTCLoss", "PoissonNLLLoss", "GaussianNLLLoss"}
SEEDS = {"manual_seed", "seed_everything", "set_seed", "set_random_seed"}
# Calls whose keywords are settings under their own names.
TRAINERS = {"Trainer", "LightningTrainer", "TrainingArguments", "Seq2SeqTrainingArguments", "SFTConfig", "DataLoader", "fit", "compile", "Accelerator", "GradScaler", "train_test_split"}
PARSERS = {"HfArgumentParser", "ArgumentParser", "parse", "cli", "parse_args", "parse_into_dataclasses", "wrap"}
MISSING = object()


def dotted(node):
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        before = dotted(node.value)
        return before + "." + node.attr if before else node.attr
    if isinstance(node, ast.Call):
        return dotted(node.func)
    return ""


class File(ast.NodeVisitor):
    def __init__(self, tree):
        self.tree, self.arguments, self.settings, self.calls = tree, [], [], []
        self.hydra, self.constants, self.functions, self.imports = None, {}, {}, {}
        self.classes, self.parsers, self.stated = {}, set(), {}
        self.inside = []

    # Values

    def value(self, node):
        """A literal, or the constant that a name stands for; MISSING for what can't be told."""
        if isinstance(node, ast.Name) and node.id in self.constants:
            return self.constants[node.id]
        try:
            found = ast.literal_eval(node)
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            return MISSING
        if isinstance(found, (str, int, float, bool)) or found is None:
            return found if found == found and found not in (float("inf"), float("-inf")) else MISSING
        if isinstance(found, (list, tuple)) and all(isinstance(v, (str, int, float, bool)) for v in found):
            return list(found)
        return MISSING

    def place(self, node):
        return [node.lineno, node.col_offset, getattr(node, "end_lineno", node.lineno), getattr(node, "end_col_offset", node.col_offset)]

    def set(self, name, value, node, how, role=""):
        if value is not MISSING and value is not None:
            self.settings.append({"name": name, "value": value, "place": self.place(node), "how": how, "role": role, "function": self.inside[-1] if self.inside else ""})

    def argument(self, names, node, how, default=MISSING, kind="", text="", choices=None, flag=False, required=False):
        self.arguments.append({"flags": names, "place": self.place(node), "how": how, "default": None if default is MISSING else default, "has_default": default is not MISSING,
                               "type": kind, "help": text if isinstance(text, str) else "", "choices": choices, "flag": flag, "required": required})

    # First look

    def collect(self):
        bound = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Name) and isinstance(node.ctx, (ast.Store, ast.Del)):
                bound[node.id] = bound.get(node.id, 0) + 1
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                self.functions[node.name] = node
            elif isinstance(node, ast.ClassDef):
                self.classes[node.name] = node
            elif isinstance(node, ast.Import):
                for a in node.names:
                    self.imports[a.asname or a.name.split(".")[0]] = a.name
            elif isinstance(node, ast.ImportFrom):
                for a in node.names:
                    self.imports[a.asname or a.name] = (node.module or "") + "." + a.name
            elif isinstance(node, ast.Call):
                name = dotted(node.func)
                self.parsers.add(name.split(".")[-1])
                self.parsers.add(name)
        for node in self.tree.body:
            target = node.targets[0] if isinstance(node, ast.Assign) and len(node.targets) == 1 else node.target if isinstance(node, ast.AnnAssign) else None
            if isinstance(target, ast.Name) and bound.get(target.id) == 1 and node.value is not None:
                found = self.value(node.value)
                if found is not MISSING:
                    self.constants[target.id], self.stated[target.id] = found, self.place(node)
        self.bound = bound

    def run(self):
        self.collect()
        for node in self.tree.body:
            self.module_level(node)
        self.visit(self.tree)

    def module_level(self, node):
        target = node.targets[0] if isinstance(node, ast.Assign) and len(node.targets) == 1 else node.target if isinstance(node, ast.AnnAssign) else None
        if not isinstance(target, ast.Name) or node.value is None or self.bound.get(target.id) != 1:
            return
        found = self.value(node.value)
        if found is not MISSING:
            self.set(target.id, found, node, "constant")
        elif isinstance(node.value, ast.Dict):
            self.mapping(target.id, node.value)
        elif isinstance(node.value, ast.Call) and dotted(node.value.func) in ("dict", "Namespace", "SimpleNamespace", "types.SimpleNamespace", "ConfigDict", "EasyDict", "OmegaConf.create", "argparse.Namespace"):
            for part in node.value.args:
                if isinstance(part, ast.Dict):
                    self.mapping(target.id, part)
            for k in node.value.keywords:
                if k.arg:
                    self.entry(target.id + "." + k.arg, k.value)

    def mapping(self, name, node):
        for key, value in zip(node.keys, node.values):
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                self.entry(name + "." + key.value, value, key)

    def entry(self, name, node, key=None):
        if isinstance(node, ast.Dict):
            self.mapping(name, node)
        elif isinstance(node, ast.Call) and dotted(node.func) == "dict":
            for k in node.keywords:
                if k.arg:
                    self.entry(name + "." + k.arg, k.value)
        else:
            found = self.value(node)
            if found is not MISSING and found is not None:
                start = key if key is not None else node
                first, last = self.place(start), self.place(node)
                self.settings.append({"name": name, "value": found, "place": first[:2] + last[2:], "how": "mapping", "role": "", "function": ""})

    # Definitions

    def visit_FunctionDef(self, node):
        self.decorated(node)
        self.inside.append(node.name)
        self.generic_visit(node)
        self.inside.pop()

    visit_AsyncFunctionDef = visit_FunctionDef

    def decorated(self, node):
        for d in node.decorator_list:
            name = dotted(d)
            last = name.split(".")[-1]
            if isinstance(d, ast.Call) and name in ("click.option", "option", "click.argument", "argument"):
                self.click(d, last)
            elif name in ("hydra.main", "hydra_main"):
                keys = {k.arg: self.value(k.value) for k in getattr(d, "keywords", []) if k.arg}
                said = {k: v for k, v in keys.items() if isinstance(v, str)}
                said["place"] = self.place(d)
                self.hydra = said
            elif isinstance(d, ast.Call) and last == "command" and not name.startswith("click") and "typer" in " ".join(self.imports.values()) or name in ("app.command", "command") and "typer" in " ".join(self.imports.values()):
                self.parameters(node, "typer")

    def click(self, d, what):
        names = [self.value(a) for a in d.args]
        names = [n for n in names if isinstance(n, str)]
        keys = {k.arg: k.value for k in d.keywords if k.arg}
        if not names:
            return
        default = self.value(keys["default"]) if "default" in keys else MISSING
        choices, kind = None, dotted(keys["type"]) if "type" in keys else ""
        if "type" in keys and isinstance(keys["type"], ast.Call) and kind.endswith("Choice") and keys["type"].args:
            choices, kind = self.value(keys["type"].args[0]), "str"
        flag = "is_flag" in keys and self.value(keys["is_flag"]) is True or any("/" in n for n in names)
        names = [n.split("/")[0].strip() for n in names]
        shown = [n for n in names if n.startswith("-")] or names
        self.argument(shown, d, "click", default, kind, self.value(keys.get("help")) if "help" in keys else "", choices if isinstance(choices, list) else None, flag,
                      "required" in keys and self.value(keys["required"]) is True or what == "argument")

    def parameters(self, function, how):
        """Parameters that become options: of a typer command, or of what fire is given."""
        args = function.args
        pairs = list(zip(args.args[len(args.args) - len(args.defaults):], args.defaults)) + [(a, d) for a, d in zip(args.kwonlyargs, args.kw_defaults) if d is not None]
        if how == "typer":
            for a in args.args[:len(args.args) - len(args.defaults)]:
                if a.arg not in ("self", "ctx"):
                    self.argument([a.arg], a, how, MISSING, dotted(a.annotation) if a.annotation is not None else "", "", None, False, True)
        for a, default in pairs:
            flags, found, text = ["--" + (a.arg.replace("_", "-") if how == "typer" else a.arg)], MISSING, ""
            calls = [default] if isinstance(default, ast.Call) else []
            if isinstance(a.annotation, ast.Subscript) and dotted(a.annotation.value).endswith("Annotated"):
                inside = a.annotation.slice
                inside = getattr(inside, "value", inside)
                calls += [e for e in getattr(inside, "elts", []) if isinstance(e, ast.Call)]
            for c in calls:
                if dotted(c.func).split(".")[-1] in ("Option", "Argument"):
                    for part in c.args:
                        v = self.value(part)
                        if isinstance(v, str) and v.startswith("-"):
                            flags = [v] if flags[0].startswith("--") and len(flags) == 1 and not v.startswith("--") is False else flags + [v]
                        elif c is default and found is MISSING and part is c.args[0]:
                            found = v
                    for k in c.keywords:
                        if k.arg == "help":
                            text = self.value(k.value)
                        elif k.arg == "default":
                            found = self.value(k.value)
            if not isinstance(default, ast.Call):
                found = self.value(default)
            first, last = self.place(a), self.place(default)
            self.arguments.append({"flags": flags, "place": first[:2] + last[2:], "how": how, "default": None if found is MISSING or found is Ellipsis else found, "has_default": found is not MISSING,
                                   "type": dotted(a.annotation) if a.annotation is not None else "", "help": text if isinstance(text, str) else "", "choices": None, "flag": isinstance(found, bool), "required": False})

    def visit_ClassDef(self, node):
        names = [dotted(d).split(".")[-1] for d in node.decorator_list]
        bases = [dotted(b).split(".")[-1] for b in node.bases]
        if "dataclass" in names or any(b in ("BaseModel", "BaseSettings", "TrainingArguments", "Serializable", "Struct") for b in bases) or "define" in names:
            self.fields(node)
        self.inside.append(node.name)
        self.generic_visit(node)
        self.inside.pop()

    def fields(self, node):
        parsed = {"hf": "HfArgumentParser" in self.parsers or "TrlParser" in self.parsers, "tyro": "tyro.cli" in self.parsers or "tyro" in self.imports,
                  "simple": any("simple_parsing" in v for v in self.imports.values()), "draccus": any("draccus" in v or "pyrallis" in v for v in self.imports.values())}
        for part in node.body:
            if not isinstance(part, ast.AnnAssign) or not isinstance(part.target, ast.Name) or part.value is None:
                continue
            found, text, value = self.value(part.value), "", part.value
            if isinstance(value, ast.Call) and dotted(value.func).split(".")[-1] in ("field", "Field"):
                if value.args:
                    found = self.value(value.args[0])
                for k in value.keywords:
                    if k.arg == "default":
                        found = self.value(k.value)
                    elif k.arg == "metadata" and isinstance(k.value, ast.Dict):
                        for key, v in zip(k.value.keys, k.value.values):
                            if isinstance(key, ast.Constant) and key.value == "help":
                                text = self.value(v)
            name = part.target.id
            if any(parsed.values()):
                if found is not MISSING:
                    flag = "--" + (name.replace("_", "-") if parsed["tyro"] and not parsed["hf"] else name)
                    self.argument([flag], part, "dataclass", found, dotted(part.annotation), text if isinstance(text, str) else "", None, isinstance(found, bool))
            else:
                self.set(node.name + "." + name, found, part, "field")

    # Calls

    def visit_Call(self, node):
        name = dotted(node.func)
        last = name.split(".")[-1]
        keys = {k.arg: k for k in node.keywords if k.arg}
        if last in OPTIMIZERS and (not name.startswith("keras.layers")):
            self.settings.append(self.spoken("optimizer", last, node, "training.optimizer"))
            self.keywords(last, keys, {"lr": "training.extra.learning_rate", "learning_rate": "training.extra.learning_rate", "weight_decay": "training.extra.weight_decay", "momentum": "training.extra.momentum"})
            if len(node.args) == 2 and "lr" not in keys and last in ("SGD", "Adam", "AdamW"):
                self.set(last + ".lr", self.value(node.args[1]), node.args[1], "call", "training.extra.learning_rate")
        elif last in SCHEDULERS:
            self.settings.append(self.spoken("scheduler", last, node, "training.scheduler"))
        elif last in LOSSES:
            self.settings.append(self.spoken("loss", last, node, "training.extra.loss"))
        elif last in SEEDS and len(node.args) == 1 or name in ("np.random.seed", "numpy.random.seed", "random.seed"):
            if node.args:
                self.set(last, self.value(node.args[0]), node, "call", "training.extra.seed")
        elif last in ("clip_grad_norm_", "clip_grad_norm") and len(node.args) > 1:
            self.set(last, self.value(node.args[1]), node, "call", "training.extra.clip_norm")
        elif last in ("DistributedDataParallel", "DDP"):
            self.settings.append(self.spoken("distributed", "ddp", node, "training.distributed_mode"))
        elif last in ("FullyShardedDataParallel", "FSDP"):
            self.settings.append(self.spoken("distributed", "fsdp", node, "training.distributed_mode"))
        elif name == "deepspeed.initialize":
            self.settings.append(self.spoken("distributed", "deepspeed", node, "training.distributed_mode"))
        elif last.startswith("DEFINE_") and len(node.args) >= 2:
            flag, default = self.value(node.args[0]), self.value(node.args[1])
            if isinstance(flag, str):
                choices = self.value(node.args[2]) if last == "DEFINE_enum" and len(node.args) > 2 else None
                self.argument(["--" + flag], node, "absl", default, {"DEFINE_integer": "int", "DEFINE_float": "float", "DEFINE_bool": "bool", "DEFINE_boolean": "bool"}.get(last, "str"),
                              self.value(node.args[-1]) if len(node.args) > 2 else "", choices if isinstance(choices, list) else None, last in ("DEFINE_bool", "DEFINE_boolean"))
        elif name in ("fire.Fire", "Fire") and node.args and isinstance(node.args[0], ast.Name) and node.args[0].id in self.functions:
            self.parameters(self.functions[node.args[0].id], "fire")
        elif name == "typer.run" and node.args and isinstance(node.args[0], ast.Name) and node.args[0].id in self.functions:
            self.parameters(self.functions[node.args[0].id], "typer")
        if last in TRAINERS or last.endswith(("Classifier", "Regressor")) and name.split(".")[0] not in ("self",):
            if last == "compile" and isinstance(keys.get("optimizer"), ast.keyword):
                said = self.value(keys["optimizer"].value)
                if isinstance(said, str):
                    self.set("compile.optimizer", said, keys["optimizer"].value, "call", "training.optimizer")
            self.keywords(last, {k: v for k, v in keys.items() if not (last == "compile" and k == "optimizer")}, {})
        if last in ("CSVDataset", "read_csv", "read_parquet", "load_dataset", "open_dataset", "loadtxt", "load_npz") and node.args:
            found = self.value(node.args[0])
            if isinstance(found, str):
                self.calls.append({"name": last, "value": found, "place": self.place(node)})
        self.generic_visit(node)

    def spoken(self, name, value, node, role):
        start = self.place(node)
        func = self.place(node.func)
        return {"name": name, "value": value if role == "training.distributed_mode" else value, "place": start[:2] + func[2:], "how": "call", "role": role, "function": self.inside[-1] if self.inside else ""}

    def keywords(self, call, keys, roles):
        for name, k in keys.items():
            found = self.value(k.value)
            if found is MISSING or found is None:
                continue
            last = self.place(k.value)
            line, column = last[0], last[1] - len(name.encode()) - 1
            if getattr(k, "lineno", None) is not None:
                line, column = k.lineno, k.col_offset
            place = [line, max(column, 0)] + last[2:]
            if isinstance(k.value, ast.Name):  # the constant says it
                place = self.stated[k.value.id]
            self.settings.append({"name": call + "." + name, "value": found, "place": place, "how": "call", "role": roles.get(name, ""), "function": self.inside[-1] if self.inside else ""})


def main():
    out = {"version": "%d.%d" % sys.version_info[:2], "files": {}}
    for path, text in ASK["files"]:
        try:
            f = File(ast.parse(text))
            f.run()
            out["files"][path] = {"arguments": f.arguments, "settings": f.settings, "hydra": f.hydra, "calls": f.calls, "error": ""}
        except (SyntaxError, ValueError, RecursionError, MemoryError) as e:
            out["files"][path] = {"arguments": [], "settings": [], "hydra": None, "calls": [], "error": "%s at line %s" % (type(e).__name__, getattr(e, "lineno", None))}
    print(json.dumps(out))


main()
