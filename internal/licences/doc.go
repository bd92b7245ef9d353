// Package licences holds the programs to the licences of what is linked into them: docs/licences.md lists each module with its
// own, and a test fails if a module is not in the list, or has a licence that nobody has decided on.
package licences
