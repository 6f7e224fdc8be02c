"""Says what stands in one Python file, read with ast: imports, paths of one machine, downloads, random numbers and seeds.

Nothing of the project is imported or run. The text of modules.py follows this one. Runs on Python 3.6 and later.
"""
import ast
import json
import os
import re
import sys

TEXT = ("Constant", "Str")


def text(node):
    """The value of a string literal, None for anything else."""
    if type(node).__name__ not in TEXT:
        return None
    value = getattr(node, "value", getattr(node, "s", None))
    return value if isinstance(value, str) else None


def literal(node, default=None):
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return default


def truth(node):
    """Whether a keyword's value is written as True."""
    return node is not None and literal(node) is True


def is_none(node):
    return literal(node, 0) is None


class Aliases(ast.NodeVisitor):
    """What the names of a file stand for: `import numpy as np` makes np numpy, `from x import y as z` makes z x.y."""

    def __init__(self):
        self.names = {}

    def visit_Import(self, node):
        for a in node.names:
            if a.asname:
                self.names[a.asname] = a.name
            else:
                self.names.setdefault(a.name.split(".")[0], a.name.split(".")[0])

    def visit_ImportFrom(self, node):
        for a in node.names:
            self.names[a.asname or a.name] = ((node.module or "") + "." + a.name).lstrip(".")


def dotted(node):
    """a.b.c of an expression, "" for one that is no plain chain of names; what a call returns is written ()."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        before = dotted(node.value)
        return before + "." + node.attr if before else "." + node.attr
    if isinstance(node, ast.Call):
        before = dotted(node.func)
        return before + "()" if before else ""
    return ""


# Folders that data, homes and scratch space of one machine are found under. System folders such as /dev, /proc, /etc and
# /tmp are the same everywhere and are left out.
MACHINE = ("tmp|var/tmp|home|Users|root|data\\d*|datasets?\\d*|mnt|media|scratch\\d*|work|workspace|gpfs|lustre|nfs|storage|Volumes|content|kaggle|srv|"
           "export|projects?|shared?|fsx|efs|dbfs|public|raid|ssd\\d*|hdd\\d*|disk\\d*|archive|cluster")
ABSOLUTE = re.compile(r"^(?:/(?:%s)/[^/\s]|[A-Za-z]:[\\/][\w$.-]{2}|\\\\[\w.-]+\\[\w$.-])" % MACHINE)
# Calls whose texts are names inside a file (HDF5) or routes of a server.
NOT_PATHS = {"create_dataset", "create_group", "require_dataset", "require_group", "get_node", "route", "add_url_rule", "add_route", "compile", "match", "search",
             "startswith", "endswith", "removeprefix", "replace", "lstrip", "rstrip", "strip"}

URL = re.compile(r"^(?:https?|ftp|s3|gs|hf|gcs)://")
FETCHES = re.compile(
    r"^(?:urllib\.request\.(?:urlopen|urlretrieve)|urllib\.(?:urlopen|urlretrieve)|urllib2\.urlopen|requests\.(?:get|post|request|Session|session)|"
    r"httpx\.(?:get|post|request|stream|Client|AsyncClient)|aiohttp\.ClientSession|urllib3\.(?:PoolManager|request)|wget\.download|gdown\.(?:download|download_folder|cached_download)|"
    r"pooch\.(?:retrieve|create)|torch\.hub\.(?:load|load_state_dict_from_url|download_url_to_file)|torch\.utils\.model_zoo\.load_url|"
    r"torchvision\.datasets\.utils\.download\w*|huggingface_hub\.(?:hf_hub_download|snapshot_download|cached_download)|"
    r"sklearn\.datasets\.fetch_\w+|(?:tensorflow\.)?keras\.utils\.get_file|(?:tensorflow\.)?keras\.datasets\.\w+\.load_data|tensorflow_datasets\.load|"
    r"nltk\.download|spacy\.cli\.download|seaborn\.load_dataset|openml\.(?:datasets|tasks)\.get_\w+|boto3\.(?:client|resource)|"
    r"kagglehub\.\w*download|kaggle\.api\.\w*download\w*|ftplib\.FTP|statsmodels\.api\.datasets\.get_rdataset|fsspec\.open_remote)$")
COMMANDS = re.compile(r"(?:^|[\s;&|/'\"])(?:wget|curl|aria2c|axel|gdown|kaggle|gsutil|rclone|s3cmd|git\s+clone|aws\s+s3|pip3?\s+(?:install|download)|huggingface-cli\s+download)(?:$|[\s'\"])")
SHELLS = re.compile(r"^(?:subprocess\.(?:run|call|check_call|check_output|Popen|getoutput|getstatusoutput)|os\.(?:system|popen|exec\w+|spawn\w+))$")
# load_dataset of Hugging Face reads local files with these builders.
BUILDERS = {"csv", "json", "parquet", "text", "imagefolder", "audiofolder", "arrow", "pandas", "xml", "webdataset"}

DRAWS = {
    "random": re.compile(r"^random\.(?:random|uniform|randint|randrange|choice|choices|sample|shuffle|gauss|normalvariate|betavariate|expovariate|triangular|getrandbits)$"),
    "numpy": re.compile(r"^numpy\.random\.(?:rand|randn|randint|random|random_sample|ranf|choice|shuffle|permutation|normal|uniform|standard_normal|binomial|poisson|beta|gamma|exponential|multivariate_normal)$"),
    "torch": re.compile(r"^torch\.(?:rand|randn|randint|randperm|rand_like|randn_like|normal|bernoulli|multinomial)$|^torch\.nn\.(?:init\.\w*(?:normal|uniform|orthogonal|sparse)\w*|Linear|Bilinear|Conv\w*|LSTM|GRU|RNN|Embedding|Transformer\w*|MultiheadAttention|Dropout\w*)$|^torch\.utils\.data\.(?:random_split|RandomSampler)$"),
    "tensorflow": re.compile(r"^tensorflow\.random\.(?!set_seed|Generator|stateless)\w+$|^(?:tensorflow\.)?keras\.(?:layers\.(?:Dense|Conv\w*|LSTM|GRU|Embedding|Dropout)|Sequential)$"),
}
SEEDS = {
    "random": re.compile(r"^random\.seed$"),
    "numpy": re.compile(r"^numpy\.random\.(?:seed|set_state)$"),
    "torch": re.compile(r"^torch\.(?:random\.)?(?:manual_seed|seed|set_rng_state)$"),
    "tensorflow": re.compile(r"^tensorflow\.random\.set_seed$|^tensorflow\.compat\.v1\.set_random_seed$"),
}
SOME_SEED = re.compile(r"^torch\.cuda\.|^jax\.|^cupy\.")  # they seed what is not looked at here
# A helper that is named for seeding seeds everything: seed_everything, set_seed, fix_seeds, set_random_seed, …
HELPER = re.compile(r"(?i)^(?:\w*_)?seed(?:s|ing)?(?:_?(?:everything|all|worker|torch|numpy))?$|^seed_?\w+$|^(?:set|fix|init)\w*seeds?\w*$")
# Estimators and splitters of scikit-learn that draw from NumPy's global generator unless random_state says otherwise.
STOCHASTIC = re.compile(
    r"^sklearn\.(?:model_selection\.(?:train_test_split|ShuffleSplit|StratifiedShuffleSplit|GroupShuffleSplit|RandomizedSearchCV)|utils\.(?:shuffle|resample)|"
    r"ensemble\.(?:RandomForest|ExtraTrees|Bagging|IsolationForest|AdaBoost)\w*|neural_network\.MLP\w+|linear_model\.(?:SGD\w+|Perceptron)|cluster\.(?:MiniBatch)?KMeans)$")
SHUFFLED = re.compile(r"^sklearn\.model_selection\.(?:Stratified|Group|StratifiedGroup)?KFold$")


class Reviewer(ast.NodeVisitor):
    """Walks one file."""

    def __init__(self, path, aliases, passed, local, data, out):
        self.path, self.aliases, self.passed, self.local, self.data, self.out = path, aliases, passed, local, data, out
        self.depth = 0      # of functions
        self.guards = 0     # try … except ImportError, if TYPE_CHECKING
        self.asked = 0      # if args.download
        self.skip = set()   # literals that are no paths: docstrings, keys, defaults that the run replaces
        self.restores = False

    def name(self, node):
        full = dotted(node)
        head, rest = full.split(".", 1) if "." in full else (full, "")
        called = head.endswith("()")
        head = head[:-2] if called else head
        head = self.aliases.get(head, "?." + head) + ("()" if called else "")  # ? is what no import brought: a name of the file's own
        return head + ("." + rest if rest else "")

    def note(self, kind, node, **more):
        more.update(path=self.path, line=getattr(node, "lineno", 0))
        self.out[kind].append(more)

    # Imports

    def visit_Import(self, node):
        for a in node.names:
            self.imported(node, a.name, None, 0)

    def visit_ImportFrom(self, node):
        self.imported(node, node.module or "", [a.name for a in node.names], node.level)

    def imported(self, node, module, names, level):
        self.note("imports", node, module=module, names=names, level=level, lazy=self.depth > 0, guarded=self.guards > 0)

    def visit_Try(self, node):
        caught = any(h.type is None or re.search(r"\b(ImportError|ModuleNotFoundError|Exception|BaseException)\b", ast.dump(h.type)) for h in node.handlers)
        self.guards += caught
        for part in node.body:
            self.visit(part)
        self.guards -= caught
        self.guards += 1  # what an except imports is the other choice
        for part in node.handlers:
            self.visit(part)
        self.guards -= 1
        for part in node.orelse + node.finalbody:
            self.visit(part)

    visit_TryStar = visit_Try

    def visit_If(self, node):
        test = ast.dump(node.test)
        typing = "TYPE_CHECKING" in test or "version_info" in test or "platform" in test or "find_spec" in test or "is_available" in test
        asked = re.search(r"(?i)'[^']*(?:download|online|fetch)[^']*'", test) is not None and "exists" not in test and "isfile" not in test
        self.visit(node.test)
        maybe = "__name__" not in test and not isinstance(node.test, ast.Constant)  # which branch is taken nobody knows here
        self.guards += typing
        self.asked += asked
        self.depth += maybe
        for part in node.body:
            self.visit(part)
        self.asked -= asked
        for part in node.orelse:
            self.visit(part)
        self.depth -= maybe
        self.guards -= typing

    def visit_Match(self, node):
        self.depth += 1
        self.generic_visit(node)
        self.depth -= 1

    visit_While = visit_Match

    def visit_With(self, node):
        caught = any("suppress" in ast.dump(item.context_expr) for item in node.items)
        self.guards += caught
        self.generic_visit(node)
        self.guards -= caught

    # Texts

    def function(self, node):
        self.docstring(node)
        self.depth += 1
        self.generic_visit(node)
        self.depth -= 1

    visit_FunctionDef = visit_AsyncFunctionDef = function

    def visit_ClassDef(self, node):
        self.docstring(node)
        self.generic_visit(node)

    def visit_Module(self, node):
        self.docstring(node)
        self.generic_visit(node)

    def docstring(self, node):
        if node.body and isinstance(node.body[0], ast.Expr) and text(node.body[0].value) is not None:
            self.skip.add(id(node.body[0].value))

    def visit_Expr(self, node):
        if text(node.value) is not None:
            return  # a text that nothing uses is a comment
        self.generic_visit(node)

    def visit_Subscript(self, node):
        for part in ast.walk(node.slice):
            if text(part) is not None:
                self.skip.add(id(part))  # file["/data/x"] is a key
        self.generic_visit(node)

    def visit_JoinedStr(self, node):
        for part in node.values[1:]:
            self.skip.add(id(part))  # only the beginning of an f-string can make it absolute
        self.generic_visit(node)

    def visit_Constant(self, node):
        value = text(node)
        if value is not None and id(node) not in self.skip and "\n" not in value and len(value) <= 300 and ABSOLUTE.match(value):
            self.note("absolute", node, text=value)
        if value is not None and id(node) not in self.skip and re.split(r"[\\/]", value)[-1] in self.data:
            self.note("data", node, text=value)

    visit_Str = visit_Constant

    # Calls

    def visit_Call(self, node):
        name = self.name(node.func)
        keywords = {k.arg: k.value for k in node.keywords if k.arg}
        spread = any(k.arg is None for k in node.keywords)
        last = name.rsplit(".", 1)[-1]
        if last in NOT_PATHS:
            for part in node.args:
                self.skip.add(id(part))
        if last == "add_argument":
            if any(text(a) in self.passed for a in node.args) and "default" in keywords:
                self.skip.update(id(part) for part in ast.walk(keywords["default"]))
            if "help" in keywords:
                self.skip.update(id(part) for part in ast.walk(keywords["help"]))
        if last in ("warn", "warning", "info", "debug", "error", "print", "exit"):
            self.skip.update(id(part) for part in node.args)
        if re.search(r"(?:^|\.)sys\.path\.(?:append|insert|extend)$", name) or name == "site.addsitedir":
            self.note("sys_path", node)
        if not self.asked:
            self.download(node, name, last, keywords)
        self.random(node, name, last, keywords, spread)
        self.generic_visit(node)

    def visit_Assign(self, node):
        if any(dotted(t).startswith("sys.path") for t in node.targets):
            self.note("sys_path", node)
        self.generic_visit(node)

    def download(self, node, name, last, keywords):
        first = text(node.args[0]) if node.args else None
        what = ""
        if FETCHES.match(name):
            what = name if not (name == "tensorflow_datasets.load" and "download" in keywords) else ""
        elif truth(keywords.get("download")):
            what = name + "(download=True)"
        elif last == "from_pretrained":
            first = first if first is not None else text(keywords.get("pretrained_model_name_or_path"))
            if first is not None and not self.local(first) and not truth(keywords.get("local_files_only")):
                what = "%s(%r)" % (last, first)
        elif name in ("datasets.load_dataset", "datasets.load.load_dataset"):
            if first is not None and first not in BUILDERS and not self.local(first):
                what = "load_dataset(%r)" % first
        elif name.startswith("torchvision.models.") or name.startswith("timm."):
            weights = keywords.get("weights")
            if truth(keywords.get("pretrained")) or weights is not None and not is_none(weights) and isinstance(weights, (ast.Attribute, ast.Constant)):
                what = name + " with pretrained weights"
        elif re.match(r"^(?:tensorflow\.)?keras\.applications\.", name) and last[:1].isupper():
            if "weights" not in keywords or text(keywords["weights"]) == "imagenet":
                what = name + " with the weights of ImageNet"
        elif SHELLS.match(name):
            said = " ".join(t for t in (text(part) for a in node.args for part in ast.walk(a)) if t)
            if COMMANDS.search(said):
                what = "%s(%.60r)" % (name, said)
        elif first is not None and URL.match(first) and re.match(r"^(?:read_|open|load|imread|loadtxt|genfromtxt|urlopen)", last):
            what = "%s(%.60r)" % (name, first)
        if what:
            self.note("downloads", node, call=what.lstrip("?."))

    def random(self, node, name, last, keywords, spread):
        for library, pattern in SEEDS.items():
            if pattern.match(name):
                if library == "torch" or any(not is_none(a) for a in node.args) or keywords:
                    self.out["seeds"].append(library)
                return
        if name in ("transformers.TrainingArguments", "transformers.Seq2SeqTrainingArguments"):
            self.out["seeds"].append("all")  # its seed is 42 unless it says otherwise
        if HELPER.match(last) and not SOME_SEED.match(name) and not last.startswith("seed_worker"):
            self.out["seeds"].append("all")
            return
        if last == "setstate":
            self.restores = True
        own = [k for k in ("random_state", "seed", "generator", "rng") if k in keywords and not is_none(keywords[k])]
        library = ""
        if name in ("random.Random", "numpy.random.default_rng", "numpy.random.RandomState"):
            if not any(not is_none(a) for a in node.args) and not own:
                library = name.split(".")[0]
                if name == "random.Random":
                    self.note("states", node, library=library, call=name)  # setstate may follow
                    return
        elif own or spread:
            return
        elif STOCHASTIC.match(name) or SHUFFLED.match(name) and truth(keywords.get("shuffle")):
            if not (last == "train_test_split" and literal(keywords["shuffle"], 0) is False if "shuffle" in keywords else False):
                library = "numpy"
        elif last == "sample" and ("frac" in keywords or "n" in keywords) and "." in name:
            library = "numpy"  # of pandas
        elif name == "torch.utils.data.DataLoader" and truth(keywords.get("shuffle")):
            library = "torch"
        else:
            library = next((lib for lib, pattern in DRAWS.items() if pattern.match(name)), "")
        if library:
            self.note("random", node, library=library, call=name)
