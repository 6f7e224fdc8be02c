package resources

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/jobs"
	"github.com/trainwright/trainwright/internal/redact"
)

// newestJobs is how many jobs the list shows; the others are found by job_list and read by their address.
const newestJobs = 50

// jobFile is a file of a job's folder.
type jobFile struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
	URI   string `json:"uri"`
}

// jobState is a job as job://<job_id> shows it.
type jobState struct {
	jobs.Status
	Files []jobFile `json:"files"`
	Next  string    `json:"next"`
}

// readJob answers job://<job_id> and job://<job_id>/<file>.
func (s *Source) readJob(ctx context.Context, a address) (Content, error) {
	folder, err := s.jobFolder(a)
	if err != nil {
		return Content{}, err
	}
	if a.path != "." {
		return a.readFile(folder, a.path, showAll, strings.HasSuffix(a.path, ".log"))
	}
	statuses, err := s.JobStatus(ctx, []string{folder})
	if err != nil {
		return Content{}, fmt.Errorf("look at job %s: %w", a.of, err)
	}
	status := statuses[0]
	encoded, err := encode(jobState{Status: status, Files: jobFiles(a.of, folder),
		Next: fmt.Sprintf(`job_logs {"job_id": %q} reads its log, errors first; job_status {"job_ids": [%q]} asks again`, a.of, a.of)})
	if err != nil {
		return Content{}, fmt.Errorf("write down job %s: %w", a.of, err)
	}
	encoded = redact.Text(encoded)
	c, err := a.read(stored{ReaderAt: strings.NewReader(encoded), name: "job.json", size: int64(len(encoded))})
	c.Version = jobVersion(status)
	return c, err
}

// jobVersion is another one when the job is in another state, and the same while its seconds pass.
func jobVersion(s jobs.Status) string {
	version := s.State
	if s.Cause != nil {
		version += " " + s.Cause.Code
	}
	if s.EndedAt != nil {
		version += " " + s.EndedAt.String()
	}
	return version
}

// jobFolder finds the folder of a job, which lies where files may be read.
func (s *Source) jobFolder(a address) (string, error) {
	if s.JobRoots == nil {
		return "", notFound(a.uri, "there are no jobs here")
	}
	roots, err := s.JobRoots()
	if err != nil {
		return "", fmt.Errorf("find the jobs: %w", err)
	}
	folder, err := jobs.Find(roots, a.of)
	var refused *finding.Refused
	if errors.As(err, &refused) {
		return "", notFound(a.uri, refused.Findings[0].What+"; expected "+refused.Findings[0].Expected)
	}
	if err != nil {
		return "", fmt.Errorf("find job %s: %w", a.of, err)
	}
	if folder, err = s.Roots.Readable(folder); err != nil {
		return "", notFound(a.uri, "the job's folder is not inside the folders that may be read")
	}
	return folder, nil
}

// jobFiles lists the files directly in a job's folder that may be read.
func jobFiles(id, folder string) []jobFile {
	files := []jobFile{}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return files // the status says what can't be read
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() || redact.SecretName(e.Name()) || strings.HasSuffix(e.Name(), ".lock") || e.Name() == jobs.ReserveFile {
			continue
		}
		files = append(files, jobFile{e.Name(), info.Size(), "job://" + id + "/" + escaped(e.Name())})
	}
	return files
}

// jobItems lists the newest jobs.
func (s *Source) jobItems() ([]Item, error) {
	if s.JobRoots == nil {
		return nil, nil
	}
	roots, err := s.JobRoots()
	if err != nil {
		return nil, fmt.Errorf("find the jobs: %w", err)
	}
	entries, _ := jobs.List(roots) // findings about unreadable jobs are job_list's to tell
	var items []Item
	for _, e := range entries[:min(len(entries), newestJobs)] {
		description := "Where the job stands, its evidence and its files"
		if e.RunID != "" {
			description += "; of run " + e.RunID
		}
		items = append(items, Item{URI: "job://" + e.JobID, Name: e.JobID, Description: description, MIME: mimeJSON, Size: -1})
	}
	return items, nil
}
