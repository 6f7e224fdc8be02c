//go:build unix

package resources

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// Named pipes, sockets and devices are not opened: reading one might never end.
func TestSpecialFilesDoNotBlock(t *testing.T) {
	s, dir := project(t)
	for _, folder := range []string{"", "runs/a"} {
		if err := syscall.Mkfifo(filepath.Join(dir, folder, "pipe.csv"), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("pipe.csv", filepath.Join(dir, folder, "linked.csv")); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("/dev/zero", filepath.Join(dir, folder, "zero.csv")); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "data/.gitignore"), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir) // a socket's path is short
	listener, err := net.Listen("unix", "socket.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, uri := range []string{"workspace:///pipe.csv", "workspace:///linked.csv", "workspace:///zero.csv", "workspace:///socket.csv", "run://r-20261130-aaaa/pipe.csv", "run://r-20261130-aaaa/linked.csv", "run://r-20261130-aaaa/zero.csv"} {
			if c, err := s.Read(t.Context(), uri); !errors.Is(err, ErrNotFound) {
				t.Errorf("%s: %+v, %v", uri, c, err)
			}
		}
		l, _ := folder(t, s, "workspace:///")
		for _, e := range l.Entries {
			if e.Name == "pipe.csv" || e.Name == "socket.csv" {
				t.Errorf("%+v", e)
			}
		}
		if c, err := s.Read(t.Context(), "workspace:///data/train.csv"); err != nil || c.Text == "" {
			t.Errorf("a pipe as .gitignore: %v", err)
		}
	}()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatal("a special file blocks")
	}
}

// A pipe that takes a file's place while it is opened does not block either.
func TestAPipeInAFilesPlace(t *testing.T) {
	s, dir := lay(t)
	file := filepath.Join(dir, "x.txt")
	done := make(chan struct{})
	stop := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
			}
			_ = os.Remove(file)
			_ = syscall.Mkfifo(file, 0o644)
			_ = os.Remove(file)
			_ = os.WriteFile(file, []byte("text"), 0o644)
		}
	}()
	read := make(chan struct{})
	go func() {
		defer close(read)
		for range 500 {
			if c, err := s.Read(t.Context(), "workspace:///x.txt"); err == nil && c.Text != "text" && c.Text != "" || err != nil && !errors.Is(err, ErrNotFound) {
				t.Errorf("%+v, %v", c, err)
				return
			}
		}
	}()
	select {
	case <-read:
	case <-time.After(30 * time.Second):
		t.Error("a pipe blocks")
	}
	close(stop)
	<-done
}
