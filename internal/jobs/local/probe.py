"""Says as one JSON line what this interpreter is and which modules and packages it would find. Nothing is imported.

Arguments: the names of modules, then -- and the names of packages. Runs on Python 3.6 and later.
"""
import sys

# The directory that the script would start in comes first on the path. A json.py in it must be found, and must not be run.
START = sys.path[:1] if sys.path[:1] == [""] else []
del sys.path[: len(START)]

import importlib.machinery  # noqa: E402
import importlib.util  # noqa: E402
import json  # noqa: E402
import os  # noqa: E402

try:
    from importlib import metadata
except ImportError:  # before 3.8
    metadata = None


def first(name):
    """The spec of a top-level module as an import would find it now. importlib.util alone would answer for modules that
    this script has imported itself, such as json, from where they came, and miss one of the same name in START."""
    for finder in (importlib.machinery.BuiltinImporter, importlib.machinery.FrozenImporter, importlib.machinery.PathFinder):
        spec = finder.find_spec(name)
        if spec is not None:
            return spec
    return None if name in sys.modules else importlib.util.find_spec(name)


def find(name):
    """Walks a dotted name part by part: find_spec on the whole name would import the parents."""
    parts = name.split(".")
    path = None
    spec = None
    for i in range(len(parts)):
        full = ".".join(parts[: i + 1])
        if i == 0:
            spec = first(full)
        else:
            spec = importlib.machinery.PathFinder.find_spec(full, path)
        if spec is None:
            return None
        path = spec.submodule_search_locations
        if path is None and i + 1 < len(parts):
            return spec  # an attribute of a module, such as os.path
    return spec


PROVIDERS = None  # which distributions provide a module; reading them all takes long, so it is done once, if at all


def version(name):
    """The version of the distribution that provides a module, empty where there is none."""
    global PROVIDERS
    if metadata is None:
        return ""
    top = name.split(".")[0]
    try:
        return metadata.version(top) or ""
    except Exception:
        pass
    if PROVIDERS is None:
        try:
            PROVIDERS = metadata.packages_distributions()
        except Exception:
            PROVIDERS = {}
    candidates = PROVIDERS.get(top, [])
    for candidate in candidates:
        try:
            return metadata.version(candidate) or ""
        except Exception:
            continue
    return ""


def module(name):
    try:
        sys.path[:0] = START
        spec = find(name)
    except Exception as error:
        return {"name": name, "found": False, "error": "%s: %s" % (type(error).__name__, error)}
    finally:
        del sys.path[: len(START)]
    if spec is None:
        return {"name": name, "found": False}
    origin = spec.origin or ""
    return {"name": name, "found": True, "origin": origin, "version": version(name), "shadows": shadowed(name, origin)}


def shadowed(name, origin):
    """Where a module would come from without the script's folder, if that folder has one of the same name."""
    # The origin of a module inside the interpreter is a word, such as "frozen".
    if not START or not os.path.isabs(origin) or not origin.startswith(os.path.join(os.getcwd(), "")):
        return ""
    try:
        spec = first(name.split(".")[0])
    except Exception:
        return ""
    return (spec.origin or "") if spec is not None else ""


def package(name):
    """A distribution by its own name, or by that of a module that it provides."""
    try:
        return {"name": name, "found": True, "version": metadata.version(name) or ""}
    except Exception:
        answer = module(name.replace("-", "_"))
        return {"name": name, "found": answer["found"], "version": answer.get("version", "")}


def managed():
    """Whether the system's package manager keeps pip out of this interpreter (PEP 668)."""
    import sysconfig

    stdlib = sysconfig.get_path("stdlib") or ""
    return sys.prefix == sys.base_prefix and os.path.exists(os.path.join(stdlib, "EXTERNALLY-MANAGED"))


ASKED = sys.argv[1:]
SPLIT = ASKED.index("--") if "--" in ASKED else len(ASKED)

print(json.dumps({
    "version": "%d.%d.%d" % sys.version_info[:3],
    "executable": sys.executable or "",
    "prefix": sys.prefix,
    "modules": [module(name) for name in ASKED[:SPLIT]],
    "packages": [package(name) for name in ASKED[SPLIT + 1:]],
    "pip": SPLIT + 1 < len(ASKED) and importlib.util.find_spec("pip") is not None,
    "managed": SPLIT + 1 < len(ASKED) and managed(),
}))
