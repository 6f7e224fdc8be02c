// Package dataset reads tabular training data: it profiles a file, splits it without leaking, writes the parts, fits
// statistics on the training part only, and resolves which columns are the sample's id, features and target.
//
// Delimited text is cut by Reader, a streaming scanner that keeps the physical line and the byte offset
// of each record, so that every finding names a place a person can open; JSON and Parquet have readers that yield the same records. Files are read in bounded memory; where a
// bound cuts an answer short, the answer says so. A data record's number is 0-based and counts neither the header nor
// blank lines; a record without an id column is called "row-<number>".
//
// Nothing here is random: splits rank rows by a hash of seed and id, so the same file and seed give the same parts on
// every machine.
package dataset
