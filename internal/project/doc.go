// Package project reads what a code tree says without running any of it: entry points and their arguments, configuration
// values, dependencies, the state of its repository, and the places where a script does something its reader would not expect.
//
// Everything it reports has a Place, and every quote is the text at that place byte for byte, so that a fact taken from here
// can be confirmed against the file. Python is read by a tokenizer of our own (token.go): argparse declarations, constants
// and imports need no interpreter, and the projects looked at are not trusted to be run. Where a python3 is there, its own parser is asked
// for the rest (settings.py): options of other libraries, fields of dataclasses, keywords of optimizers. It only parses.
package project
