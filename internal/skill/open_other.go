//go:build !unix

package skill

// withoutWaiting is nothing where named pipes have no place in a folder.
const withoutWaiting = 0
