// Package evidence holds what a run is allowed to believe: sources captured once with their hash, facts that quote a
// source word for word, and claims about a run with the bytes they came from. The formats are those of formats.md.
//
// A model can write down any value. What keeps a CONFIRMED fact honest is that its quote is looked for in the bytes kept
// at capture, and its value in the quote.
package evidence
