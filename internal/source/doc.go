// Package source turns what a person points at into text that can be quoted: pages of the web (fetched with guards against
// reaching into private networks), PDFs with their page numbers, notebooks with their cell numbers. Everything it reads is hostile
// until read: sizes, times and redirects are bounded, and a library that panics on a damaged file is held.
package source
