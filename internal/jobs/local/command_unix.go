//go:build linux || darwin

package local

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/trainwright/trainwright/internal/jobs"
)

// findCommand is the file that a command's first word names: a path from the working directory, or the first executable of
// that name on PATH. The codes are a shell's: 127 not found, 126 found and not executable.
func findCommand(word, workDir, path string) (file string, code int, problem string) {
	if strings.Contains(word, "/") {
		file = word
		if !filepath.IsAbs(file) {
			file = filepath.Join(workDir, file)
		}
		code, problem = executable(file)
		return file, code, problem
	}
	code, problem = 127, fmt.Sprintf("%s: command not found on PATH %s", word, path)
	for _, directory := range filepath.SplitList(path) {
		if directory == "" {
			directory = "."
		}
		if !filepath.IsAbs(directory) {
			directory = filepath.Join(workDir, directory)
		}
		candidate := filepath.Join(directory, word)
		found, why := executable(candidate)
		if why == "" {
			return candidate, 0, ""
		}
		if found == 126 && code == 127 {
			code, problem = found, why // a shell goes on looking and reports this one
		}
	}
	return "", code, problem
}

func executable(file string) (code int, problem string) {
	info, err := os.Stat(file)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return 127, fmt.Sprintf("%s: no such file", file)
	case err != nil:
		return 126, fmt.Sprintf("%s: %v", file, err)
	case info.IsDir():
		return 126, fmt.Sprintf("%s: is a directory", file)
	case info.Mode()&0o111 == 0:
		return 126, fmt.Sprintf("%s: permission denied, it is not executable", file)
	}
	return 0, ""
}

// startProblem puts the error of an exec into words.
func startProblem(path string, err error) (code int, problem string) {
	switch {
	case errors.Is(err, syscall.ENOENT):
		return 127, fmt.Sprintf("%s: the interpreter that its first line names is not there", path)
	case errors.Is(err, syscall.ENOEXEC):
		return 126, fmt.Sprintf("%s: not a program for this machine, and no #! line names an interpreter", path)
	}
	return 126, fmt.Sprintf("%s: %v", path, err)
}

// logLinks are the names under which the job's logs are found in its working directory.
func logLinks(folder string, request jobs.Request) map[string]string {
	base := filepath.Join(request.WorkDir, "logs", request.JobID)
	return map[string]string{base + ".out": filepath.Join(folder, jobs.StdoutFile), base + ".err": filepath.Join(folder, jobs.StderrFile)}
}

// linkLogs makes <work_dir>/logs/<job_id>.out and .err symbolic links to the logs, hard links where the file system has no
// symbolic ones; false where neither is possible. What is there under such a name already stays.
func linkLogs(folder string, request jobs.Request) bool {
	if info, err := os.Stat(request.WorkDir); err != nil || !info.IsDir() {
		return true // the command will not start either
	}
	linked := true
	for link, log := range logLinks(folder, request) {
		if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
			return false
		}
		target, err := filepath.Rel(filepath.Dir(link), log)
		if err != nil {
			target = log
		}
		if there, err := os.Readlink(link); err == nil && there == target {
			continue
		}
		if os.Symlink(target, link) != nil && os.Link(log, link) != nil {
			linked = false
		}
	}
	return linked
}

// copyLogs copies the logs where they could not be linked; one that can't be copied is still in the job's folder.
func copyLogs(folder string, request jobs.Request) {
	for copied, log := range logLinks(folder, request) {
		if _, err := os.Lstat(copied); err == nil {
			continue
		}
		_ = copyFile(log, copied)
	}
}

func copyFile(from, to string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	return errors.Join(err, target.Close())
}
