"""Says as one JSON line what this interpreter is and which modules it would find. Nothing is imported.

Arguments: the names of modules. Runs on Python 3.6 and later.
"""
import sys

# The directory that the script would start in comes first on the path. A json.py in it must be found, and must not be run.
START = sys.path[:1] if sys.path[:1] == [""] else []
del sys.path[: len(START)]

import importlib.machinery  # noqa: E402
import importlib.util  # noqa: E402
import json  # noqa: E402

try:
    from importlib import metadata
except ImportError:  # before 3.8
    metadata = None


def find(name):
    """Walks a dotted name part by part: find_spec on the whole name would import the parents."""
    parts = name.split(".")
    path = None
    spec = None
    for i in range(len(parts)):
        full = ".".join(parts[: i + 1])
        if i == 0 and (full in sys.builtin_module_names):
            spec = importlib.machinery.BuiltinImporter.find_spec(full)
        elif i == 0:
            spec = importlib.util.find_spec(full)
        else:
            spec = importlib.machinery.PathFinder.find_spec(full, path)
        if spec is None:
            return None
        path = spec.submodule_search_locations
        if path is None and i + 1 < len(parts):
            return spec  # an attribute of a module, such as os.path
    return spec


def version(name):
    """The version of the distribution that provides a module, empty where there is none."""
    if metadata is None:
        return ""
    top = name.split(".")[0]
    candidates = [top]
    try:
        candidates += metadata.packages_distributions().get(top, [])
    except Exception:
        pass
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
    return {"name": name, "found": True, "origin": spec.origin or "", "version": version(name)}


print(json.dumps({
    "version": "%d.%d.%d" % sys.version_info[:3],
    "executable": sys.executable or "",
    "prefix": sys.prefix,
    "modules": [module(name) for name in sys.argv[1:]],
}))
