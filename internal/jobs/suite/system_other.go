//go:build !linux

package suite

import (
	"errors"
	"testing"
)

// smallDisk can't be had here.
func smallDisk(*testing.T) (root, before string, err error) {
	return "", "", errors.New("small disks are mounted on Linux only")
}
