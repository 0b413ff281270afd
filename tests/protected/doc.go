// Package protected tests what becomes of a project's protected paths beyond
// attacks on them: that git goes on working in every layout of a repository,
// that nothing is left behind, and that what cannot be prevented is told.
package protected
