// Package metrics reads what a training script says about itself: series of values (JSONL in long or wide rows, CSV,
// text logs of Keras, Hugging Face, tqdm and plain pairs; Read takes any) and predictions by sample id. It names every
// value alike whatever the script called it, tells whether a series is sound (Health), draws it (Plot), and computes
// metrics anew from predictions and the server's own targets, with a bootstrap interval (Recompute).
//
// Files are streamed: memory is bounded by MaxLine, MaxPoints, MaxKeys and MaxPredictions, whatever the file's size.
// Byte ranges ([Start, End), 0-based, without the line's end) and physical lines (from 1) name where a value stands, so
// that a claim can point at its evidence.
package metrics
