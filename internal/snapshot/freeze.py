"""Says as one JSON line which packages this interpreter has and where it would import from. Nothing is imported.

Runs on Python 3.8 and later.
"""
import sys

if sys.path[:1] == [""]:
    del sys.path[0]

import json  # noqa: E402
from importlib import metadata  # noqa: E402
from urllib.parse import unquote, urlparse  # noqa: E402

packages = {}
editable = []
for distribution in metadata.distributions():
    name = (distribution.metadata or {}).get("Name")
    if not name or name in packages:
        continue  # the first one on the path is the one that is imported
    packages[name] = distribution.version or ""
    try:
        where = json.loads(distribution.read_text("direct_url.json") or "{}")
        if where.get("dir_info", {}).get("editable") and where.get("url", "").startswith("file:"):
            editable.append(unquote(urlparse(where["url"]).path))
    except Exception:
        continue  # a damaged record says nothing about where the package comes from

print(json.dumps({
    "version": "%d.%d.%d" % sys.version_info[:3],
    "prefix": sys.prefix,
    "packages": packages,
    "path": sys.path,
    "editable": editable,
}))
