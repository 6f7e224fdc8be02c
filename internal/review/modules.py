

# Which files belong to the script: it, and the modules of its project that it imports. ASK is what is asked, a dictionary:
# entry (absolute path), roots (folders that imports of the project start from), top (the folder that files may be read from),
# max_files, max_bytes, passed (the options that the run passes), data (files of data). The answer is one JSON line.


def inside(path, roots):
    real = os.path.realpath(path)
    return any(real == root or real.startswith(os.path.join(root, "")) for root in roots)


def extension(folder, name):
    """A compiled module of that name."""
    try:
        return any(f.startswith(name + ".") and f.endswith((".so", ".pyd")) for f in os.listdir(folder))
    except OSError:
        return False


def step(folder, name):
    """What name is in a folder of modules: the file or folder that holds it, and the folder of its own modules."""
    package, module = os.path.join(folder, name), os.path.join(folder, name + ".py")
    init = os.path.join(package, "__init__.py")
    if os.path.isfile(init):
        return init, package
    if os.path.isfile(module):
        return module, ""
    if extension(folder, name):
        return "binary", ""
    if os.path.isdir(package):
        for base, _, files in os.walk(package):
            if any(f.endswith(".py") for f in files):
                return "namespace", package
            if base.count(os.sep) - package.count(os.sep) > 2:
                break
    return "", ""


class Project:
    def __init__(self, ask, out):
        self.entry, self.roots, self.out = ask["entry"], ask["roots"], out
        self.real = [os.path.realpath(r) for r in ask["roots"] + [ask["top"]]]
        self.max_files, self.max_bytes, self.passed = ask["max_files"], ask["max_bytes"], set(ask["passed"])
        self.data = set(os.path.basename(name) for name in ask["data"])
        self.queue, self.seen, self.packages = [], set(), {}
        self.external = []

    def add(self, path, package):
        real = os.path.realpath(path)
        if real in self.seen or not inside(path, self.real):
            return
        self.seen.add(real)
        self.packages[path] = package
        self.queue.append(path)

    def run(self):
        self.add(self.entry, None)
        total = 0
        while self.queue:
            path = self.queue.pop(0)
            try:
                size = os.path.getsize(path)
                if len(self.out["files"]) >= self.max_files or total + size > self.max_bytes:
                    self.out["left_out"].append(path)
                    continue
                with open(path, "rb") as file:
                    source = file.read()
            except OSError as error:
                self.out["syntax"].append({"path": path, "line": 0, "what": str(error)})
                continue
            total += len(source)
            self.out["files"].append(path)
            self.review(path, source)

    def review(self, path, source):
        try:
            compile(source, path, "exec", dont_inherit=True)
            tree = ast.parse(source, path)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            self.out["syntax"].append({"path": path, "line": getattr(error, "lineno", None) or 0, "what": str(error)})
            return
        aliases = Aliases()
        aliases.visit(tree)
        found = dict(self.out, imports=[], states=[])
        reviewer = Reviewer(path, aliases.names, self.passed, self.local, self.data, found)
        try:
            reviewer.visit(tree)
        except RecursionError:
            self.out["left_out"].append(path)
        if not reviewer.restores:
            self.out["random"].extend(found["states"])
        for i in found["imports"]:
            self.resolve(i)

    def local(self, name):
        """Whether a text names something on the disk instead of a repository on a hub."""
        if name.startswith((".", "/", "~", "\\")) or re.match(r"^[A-Za-z]:[\\/]", name):
            return True
        return any(os.path.exists(os.path.join(root, name)) for root in self.roots)

    def resolve(self, i):
        if i["level"]:
            package = self.packages[i["path"]]
            if package is None:
                self.missing(i, "." * i["level"] + i["module"], "a script that is started by its path has no package to import from")
                return
            folder = package
            for _ in range(i["level"] - 1):
                folder = os.path.dirname(folder)
            self.walk(i, folder, i["module"].split(".") if i["module"] else [], "." * i["level"])
            return
        parts = i["module"].split(".")
        if parts[0] in sys.builtin_module_names:
            return
        for root in self.roots:
            holder = step(root, parts[0])[0]
            if not holder:
                continue
            known = len(self.out["unresolved"])
            self.walk(i, root, parts, "")
            if holder != "namespace" or len(self.out["unresolved"]) == known:
                return
            lost = self.out["unresolved"].pop()  # an installed package wins over a folder without __init__.py
            del self.out["unresolved"][known:]
            self.out["external"].append(dict(lost, module=parts[0], text=lost["module"]))
            return
        if parts[0] not in STANDARD and not i["guarded"]:
            self.out["external"].append({"module": parts[0], "path": i["path"], "line": i["line"], "lazy": i["lazy"]})

    def walk(self, i, folder, parts, said):
        """Follows a dotted name from a folder, and the names that are taken from it."""
        holder = os.path.join(folder, "__init__.py")
        if not parts and not os.path.isfile(holder):
            holder = "namespace"
        for n, part in enumerate(parts):
            if not folder:
                if n == len(parts) - 1 or i["names"] is None:
                    self.missing(i, said + ".".join(parts[: n + 1]), "%s is a module, not a package" % ".".join(parts[:n]))
                return
            holder, inner = step(folder, part)
            if not holder:
                self.missing(i, said + ".".join(parts[: n + 1]), "%s holds no %s.py" % (folder, part))
                return
            if holder.endswith(".py"):
                self.add(holder, inner or folder)
            folder = inner
            if holder == "binary":
                return
        for name in i["names"] or []:
            if name == "*" or not folder:
                continue
            sub, inner = step(folder, name)
            if sub.endswith(".py"):
                self.add(sub, inner or folder)
            elif not sub and holder == "namespace":
                self.missing(i, said + ".".join(parts + [name]), "%s holds no %s.py" % (folder, name))

    def missing(self, i, module, why):
        if not i["guarded"]:
            self.out["unresolved"].append({"module": module, "path": i["path"], "line": i["line"], "lazy": i["lazy"], "why": why})


# Before 3.10 Python does not list its own library; its modules are then looked for like any other.
STANDARD = set(getattr(sys, "stdlib_module_names", ())) | set(sys.builtin_module_names)


def main():
    ask = ASK  # noqa: F821 (set by whoever runs this text)
    out = {k: [] for k in ("files", "left_out", "syntax", "external", "unresolved", "sys_path", "absolute", "data", "downloads", "random", "seeds")}
    out["version"] = "%d.%d.%d" % sys.version_info[:3]
    sys.setrecursionlimit(5000)
    Project(ask, out).run()
    out["seeds"] = sorted(set(out["seeds"]))
    print(json.dumps(out))


main()
