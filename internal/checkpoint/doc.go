// Package checkpoint says what a checkpoint file holds and whether it is whole, without running any of it: a pickle is
// never loaded. It reads the marker that a writer leaves beside a finished file (<file>.complete.json, formats.md), and
// what the file's own format proves: JSON to its last brace, the central directory that a PyTorch zip ends with, the
// offsets of a safetensors header.
package checkpoint
