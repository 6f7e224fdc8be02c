package suite

import (
	"os"
	"syscall"
	"testing"
)

// smallDisk mounts a file system of 1 MiB for the length of the case. What it answers beside the folder is put before the
// command; nothing is needed.
func smallDisk(t *testing.T) (root, before string, err error) {
	root = t.TempDir()
	if err := syscall.Mount("trainwright-test", root, "tmpfs", 0, "size=1m"); err != nil {
		return "", "", os.NewSyscallError("mount", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(root, syscall.MNT_DETACH); err != nil {
			t.Errorf("unmount the small disk: %v", err)
		}
	})
	return root, "", nil
}
