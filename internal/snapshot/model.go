package snapshot

import (
	"path/filepath"
	"time"
)

// The names inside a job's folder, and the environment variables that a job from a snapshot gets.
const (
	File   = "snapshot.json"
	Folder = "snapshot"
	// TreeVariable holds the tree hash. It is part of the job's request, so that a snapshot.json that was rewritten to
	// match an edited copy still differs from what the job was started with.
	TreeVariable = "TRAINWRIGHT_SNAPSHOT"
)

// The names of the roots below snapshot/.
const (
	ProjectName = "project"
	CodeName    = "code_save_dir"
)

// Snapshot is snapshot.json. Paths of files and links are relative to their root, with forward slashes.
type Snapshot struct {
	TakenAt time.Time `json:"taken_at"`
	// TreeSHA256 is over every copied file (path, hash, executable or not) and every link (path, target).
	TreeSHA256 string `json:"tree_sha256"`
	// Entrypoint is relative to snapshot/, such as "project/train.py".
	Entrypoint string `json:"entrypoint"`
	Roots      []Root `json:"roots"`
	// Git is nil where the project is in no repository.
	Git *Git `json:"git,omitempty"`
	// Inputs are the files that the command reads and that were not copied: parts of the data, checkpoints.
	Inputs []Original `json:"inputs"`
	Python Python     `json:"python"`
	// PythonPath are the folders, relative to snapshot/, that stand in for those of the project from which the interpreter
	// would import: an editable installation, or PYTHONPATH. Inherited is the rest of PYTHONPATH.
	PythonPath []string `json:"python_path,omitempty"`
	Inherited  string   `json:"inherited_python_path,omitempty"`
	// Modules are the environment modules that were loaded (LOADEDMODULES).
	Modules []string `json:"modules"`
	Machine Machine  `json:"machine"`

	// JobFolder is the job's folder that holds it; not on disk, so that a folder may be moved.
	JobFolder string `json:"-"`
}

// Root is one tree that was copied: below snapshot/<Name> lies what Original held.
type Root struct {
	Name     string   `json:"name"`
	Original string   `json:"original"` // absolute, links resolved
	Files    []Copied `json:"files"`
	Links    []Link   `json:"links"`
	// Skipped are the files that were seen and not copied; they are reached through Links.
	Skipped []Original `json:"skipped"`
}

// Copied is a file of the snapshot.
type Copied struct {
	Path       string `json:"path"`
	Bytes      int64  `json:"bytes"`
	SHA256     string `json:"sha256"`
	Executable bool   `json:"executable,omitempty"`
}

// Link leads from the snapshot to a file or folder of the original tree.
type Link struct {
	Path   string `json:"path"`
	Target string `json:"target"` // absolute
	Folder bool   `json:"folder,omitempty"`
}

// Original is a file that was not copied. SHA256 is empty where hashing it was beyond the limits, or where its name says
// that it holds secrets; then size and time stand for it.
type Original struct {
	Path    string    `json:"path"`
	Bytes   int64     `json:"bytes"`
	SHA256  string    `json:"sha256,omitempty"`
	ModTime time.Time `json:"mod_time"`
	Why     string    `json:"why,omitempty"`
}

// Git is the state of the copied files against the commit.
type Git struct {
	Root   string `json:"root"`
	Commit string `json:"commit,omitempty"`
	Branch string `json:"branch,omitempty"`
	// Changed are copied files that differ from the commit, Deleted files of the commit that are gone; relative to Root.
	Changed []string `json:"changed"`
	Deleted []string `json:"deleted"`
	// Untracked are copied files that the commit does not hold, with their hashes.
	Untracked map[string]string `json:"untracked"`
	// Diff is the unified difference of Changed, secrets masked; DiffCut says that it is not all.
	Diff    string `json:"diff"`
	DiffCut bool   `json:"diff_cut,omitempty"`
	Error   string `json:"error,omitempty"`
}

// Python is the interpreter that runs the job. Packages are what importlib.metadata lists, by name.
type Python struct {
	Path     string            `json:"path"`
	Version  string            `json:"version,omitempty"`
	Prefix   string            `json:"prefix,omitempty"`
	Packages map[string]string `json:"packages"`
	Error    string            `json:"error,omitempty"`
}

// Machine is where the job runs, as the runtime's Discover saw it.
type Machine struct {
	Host          string        `json:"host"`
	OS            string        `json:"os"`
	Arch          string        `json:"arch"`
	CPUs          int           `json:"cpus"`
	MemoryTotalMB int64         `json:"memory_total_mb"`
	Accelerators  []Accelerator `json:"accelerators"`
	// Driver is that of the accelerators, empty without any.
	Driver string `json:"driver,omitempty"`
}

// Accelerator is one GPU.
type Accelerator struct {
	Index         int    `json:"index"`
	Name          string `json:"name"`
	MemoryTotalMB int64  `json:"memory_total_mb"`
}

// Limits bound what Take reads and writes. Zero means the default.
type Limits struct {
	MaxFileBytes int64 // a larger file is linked; 4 MiB
	MaxBytes     int64 // all copies together; 64 MiB
	MaxFiles     int   // copies; 5,000
	MaxLinks     int   // links; 10,000
	MaxHashBytes int64 // bytes of files not copied that are hashed, over all of them; 512 MiB
	MaxDiffBytes int64 // of the difference that is kept; 256 KiB
}

func (l Limits) orDefault() Limits {
	set := func(field *int64, standard int64) {
		if *field == 0 {
			*field = standard
		}
	}
	set(&l.MaxFileBytes, 4<<20)
	set(&l.MaxBytes, 64<<20)
	set(&l.MaxHashBytes, 512<<20)
	set(&l.MaxDiffBytes, 256<<10)
	if l.MaxFiles == 0 {
		l.MaxFiles = 5000
	}
	if l.MaxLinks == 0 {
		l.MaxLinks = 10_000
	}
	return l
}

// dir is the folder of the copies.
func (s Snapshot) dir() string { return filepath.Join(s.JobFolder, Folder) }
