// Package sources reads the source of the whole project, and holds it to rules
// about imports, file calls, documents and tests. "make check-fast" runs it.
package sources
