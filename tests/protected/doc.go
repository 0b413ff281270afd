// Package protected tests a project's protected paths, apart from attacks on
// them: git works in every layout of a repository, no file is left behind, and
// changes that cannot be prevented are reported.
package protected
