package project

import (
	"errors"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/trainwright/trainwright/internal/finding"
	"gopkg.in/yaml.v3"
)

// requirementsFile reports whether a base name is one of pip's requirements files.
func requirementsFile(base string) bool {
	return path.Ext(base) == ".txt" && (strings.HasPrefix(base, "requirements") || strings.HasSuffix(base, "requirements.txt") || base == "constraints.txt")
}

// readDependencies reads what one file declares: requirements*.txt, pyproject.toml ([project] and poetry's own table) and
// conda's environment.yml. Another file declares nothing.
func readDependencies(name, src string) ([]Dependency, []finding.Finding) {
	d := dependencyReader{path: name, src: src, lines: indexLines(src)}
	switch base := strings.ToLower(path.Base(name)); {
	case requirementsFile(base):
		d.requirements()
	case base == "pyproject.toml":
		d.pyproject()
	case base == "environment.yml" || base == "environment.yaml":
		d.environment()
	}
	return d.found, d.findings
}

type dependencyReader struct {
	path     string
	src      string
	lines    lineIndex
	from     int // where the search for the next entry begins
	found    []Dependency
	findings []finding.Finding
}

// requirement is PEP 508 as far as a name and what follows it goes.
var requirement = regexp.MustCompile(`^([A-Za-z0-9][A-Za-z0-9._-]*)\s*(\[[^\]]*\])?\s*(.*)$`)

// add splits "torch[cuda]>=2.0 ; python_version > '3'" into name and constraint (the marker belongs to the constraint).
func (d *dependencyReader) add(text string, start, end int) {
	m := requirement.FindStringSubmatch(strings.TrimSpace(text))
	if m == nil || m[3] != "" && strings.IndexByte("<>=!~;@(*0123456789", m[3][0]) < 0 {
		return // a URL or a path
	}
	constraint := strings.TrimSpace(m[2] + " " + strings.TrimSpace(m[3]))
	d.found = append(d.found, Dependency{Name: m[1], Constraint: constraint, Place: Place{d.path, d.lines.line(start), start, end}})
}

// requirements reads pip's format: comments, options, and lines continued by a backslash.
func (d *dependencyReader) requirements() {
	for i, start := range d.lines {
		end := len(d.src)
		if i+1 < len(d.lines) {
			end = d.lines[i+1]
		}
		line := strings.TrimRight(d.src[start:end], "\r\n")
		line = strings.TrimPrefix(line, "\ufeff")
		if comment := strings.Index(line, "#"); comment == 0 || comment > 0 && (line[comment-1] == ' ' || line[comment-1] == '\t') {
			line = line[:comment]
		}
		line = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(line), `\`))
		if options := strings.Index(line, " --"); options > 0 {
			line = strings.TrimSpace(line[:options])
		}
		if line == "" || strings.HasPrefix(line, "-") {
			continue
		}
		at := start + strings.Index(d.src[start:end], line)
		d.add(line, at, at+len(line))
	}
}

// pyproject reads the two tables that name packages. Their places are found by their own text, which stands in the file
// verbatim.
func (d *dependencyReader) pyproject() {
	var file struct {
		Project struct {
			Dependencies []string `toml:"dependencies"`
		} `toml:"project"`
		Tool struct {
			Poetry struct {
				Dependencies map[string]any `toml:"dependencies"`
			} `toml:"poetry"`
		} `toml:"tool"`
	}
	if err := toml.Unmarshal([]byte(d.src), &file); err != nil {
		line := 0
		var fault *toml.DecodeError
		if errors.As(err, &fault) {
			line, _ = fault.Position()
		}
		d.malformed(line, strings.TrimPrefix(err.Error(), "toml: "))
		return
	}
	d.from = max(strings.Index(d.src, "[project]"), 0)
	for _, text := range file.Project.Dependencies {
		at := d.locate(text)
		d.add(text, at, min(at+len(text), len(d.src)))
	}
	d.from = max(strings.Index(d.src, "[tool.poetry.dependencies]"), 0)
	for _, name := range slices.Sorted(mapKeys(file.Tool.Poetry.Dependencies)) {
		constraint, _ := file.Tool.Poetry.Dependencies[name].(string)
		if table, ok := file.Tool.Poetry.Dependencies[name].(map[string]any); ok {
			constraint, _ = table["version"].(string)
		}
		at := max(strings.Index(d.src[d.from:], "\n"+name), 0) + d.from + 1
		d.found = append(d.found, Dependency{Name: name, Constraint: constraint, Place: Place{d.path, d.lines.line(at), at, min(at+len(name), len(d.src))}})
	}
}

func mapKeys(m map[string]any) func(func(string) bool) {
	return func(yield func(string) bool) {
		for key := range m {
			if !yield(key) {
				return
			}
		}
	}
}

// locate finds an entry's text from where the one before it ended.
func (d *dependencyReader) locate(text string) int {
	at := strings.Index(d.src[d.from:], text)
	if at < 0 {
		return d.from // written with escapes
	}
	at += d.from
	d.from = at + len(text)
	return at
}

// environment reads conda's list, the pip list in it too. Conda's single "=" is kept as it is.
func (d *dependencyReader) environment() {
	var root yaml.Node
	if err := yaml.Unmarshal([]byte(d.src), &root); err != nil {
		d.malformed(yamlFault(err))
		return
	}
	if len(root.Content) == 0 {
		return
	}
	d.condaList(field(root.Content[0], "dependencies"))
}

func (d *dependencyReader) condaList(list *yaml.Node) {
	if list == nil || list.Kind != yaml.SequenceNode {
		return
	}
	for _, element := range list.Content {
		switch element.Kind {
		case yaml.MappingNode:
			d.condaList(field(element, "pip"))
		case yaml.ScalarNode:
			text := element.Value
			if _, name, channel := strings.Cut(text, "::"); channel {
				text = name
			}
			d.from = d.lines[min(max(element.Line-1, 0), len(d.lines)-1)]
			at := d.locate(text)
			d.add(text, at, min(at+len(text), len(d.src)))
		}
	}
}

// field returns the value of a mapping's key, or nil.
func field(node *yaml.Node, key string) *yaml.Node {
	if node.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value == key {
			return resolved(node.Content[i+1])
		}
	}
	return nil
}

func (d *dependencyReader) malformed(line int, message string) {
	d.findings = append(d.findings, finding.Finding{Code: "dependencies_malformed", Severity: finding.Warning,
		What: d.path + " can't be read: " + message, Where: &finding.Where{Path: d.path, Line: min(line, len(d.lines))},
		Expected: "a file its own tool accepts", Remedy: "correct the file; its dependencies are not known"})
}

// packageOfModule names the packages whose module is called otherwise, so that a declared one is not reported as missing.
var packageOfModule = map[string]string{"cv2": "opencv-python", "PIL": "pillow", "sklearn": "scikit-learn", "skimage": "scikit-image", "yaml": "pyyaml", "bs4": "beautifulsoup4",
	"Bio": "biopython", "pytorch_lightning": "pytorch-lightning", "lightning": "lightning", "torch": "pytorch", "dateutil": "python-dateutil", "OpenSSL": "pyopenssl", "serial": "pyserial",
	"netCDF4": "netcdf4", "attr": "attrs", "dotenv": "python-dotenv", "rdkit": "rdkit-pypi", "osgeo": "gdal", "google": "protobuf", "mpl_toolkits": "matplotlib", "pkg_resources": "setuptools"}

var separators = regexp.MustCompile(`[-_.]+`)

// packageKey is PEP 503's normal form of a package's name.
func packageKey(name string) string {
	return separators.ReplaceAllString(strings.ToLower(name), "-")
}

// undeclared turns the imports into dependencies, without the standard library, the project's own modules and what is
// declared already.
func undeclared(imports []importedModule, declared []Dependency, local func(name, importer string) bool) []Dependency {
	known := map[string]bool{}
	for _, d := range declared {
		known[packageKey(d.Name)] = true
		known[strings.TrimSuffix(packageKey(d.Name), "-headless")] = true
	}
	var found []Dependency
	for _, module := range imports {
		if standardModules[module.name] || local(module.name, module.place.Path) || known[packageKey(module.name)] || known[packageKey(packageOfModule[module.name])] {
			continue
		}
		known[packageKey(module.name)] = true
		found = append(found, Dependency{Name: module.name, Imported: true, Place: module.place})
	}
	return found
}
