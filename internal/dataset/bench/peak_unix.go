//go:build unix

package main

import (
	"os"
	"runtime"
	"syscall"
)

// peak is the most resident memory a process that has ended ever had, in MB (getrusage(2): KiB, on darwin bytes). On Linux it
// is never less than what its parent held when it started it, which is why the bench itself stays small.
func peak(ended *os.ProcessState) float64 {
	usage, ok := ended.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0
	}
	if runtime.GOOS == "darwin" || runtime.GOOS == "ios" {
		return float64(usage.Maxrss) / megabyte
	}
	return float64(usage.Maxrss) * 1024 / megabyte
}
