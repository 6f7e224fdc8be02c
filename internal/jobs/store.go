package jobs

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/trainwright/trainwright/internal/finding"
)

// Entry is a job found on disk.
type Entry struct {
	JobID   string
	RunID   string
	Folder  string
	Request Request
}

// List finds the jobs under the given roots, newest first. A root is a folder of job folders: <trainer_workdir>/jobs of
// each run and <workspace>/.onescience/jobs. A root that does not exist holds no jobs; a job whose request can't be read
// is reported as a finding and left out. A folder without a request is a job that is being created, or was never.
func List(roots []string) ([]Entry, []finding.Finding) {
	var entries []Entry
	var findings []finding.Finding
	unreadable := func(path string, err error) {
		findings = append(findings, finding.Finding{Code: "job_unreadable", Severity: finding.Warning,
			What: "the job can't be read: " + err.Error(), Where: &finding.Where{Path: path},
			Expected: "a readable " + RequestFile, Remedy: "look at the file; nothing was changed"})
	}
	for _, root := range unique(roots) {
		children, err := os.ReadDir(root)
		if err != nil {
			if !errors.Is(err, fs.ErrNotExist) {
				unreadable(root, err)
			}
			continue
		}
		for _, child := range children {
			folder := filepath.Join(root, child.Name())
			if _, err := os.Stat(filepath.Join(folder, RequestFile)); err != nil {
				continue
			}
			request, err := ReadRequest(folder)
			if err != nil {
				unreadable(filepath.Join(folder, RequestFile), err)
				continue
			}
			entries = append(entries, Entry{JobID: child.Name(), RunID: request.RunID, Folder: folder, Request: request})
		}
	}
	slices.SortStableFunc(entries, func(a, b Entry) int {
		return cmp.Or(b.Request.CreatedAt.Compare(a.Request.CreatedAt), strings.Compare(a.JobID, b.JobID))
	})
	return entries, findings
}

func unique(roots []string) []string {
	var out []string
	for _, root := range roots {
		if root = filepath.Clean(root); !slices.Contains(out, root) {
			out = append(out, root)
		}
	}
	return out
}

// knownShown bounds the ids that a refusal lists.
const knownShown = 20

// Find is the folder of a job under the given roots. An id that none of them holds is refused with job_unknown and the
// newest ids there are.
func Find(roots []string, jobID string) (string, error) {
	if idPattern.MatchString(jobID) {
		for _, root := range unique(roots) {
			folder := filepath.Join(root, jobID)
			if _, err := os.Stat(filepath.Join(folder, RequestFile)); err == nil {
				return folder, nil
			}
		}
	}
	entries, _ := List(roots)
	expected := "a job id; there are no jobs here"
	if len(entries) > 0 {
		ids := make([]string, 0, knownShown)
		for _, entry := range entries[:min(len(entries), knownShown)] {
			ids = append(ids, entry.JobID)
		}
		expected = "one of " + strings.Join(ids, ", ")
		if more := len(entries) - len(ids); more > 0 {
			expected += fmt.Sprintf(" and %d older", more)
		}
	}
	return "", finding.Refuse(finding.Finding{Code: "job_unknown", Severity: finding.Error, What: fmt.Sprintf("there is no job %q", jobID),
		Where: &finding.Where{Field: "job_id"}, Expected: expected, Remedy: "send one of these ids, or job_list for all"})
}
