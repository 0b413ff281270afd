// Package temporary tests that sessions have temporary files of their own, and
// that hidden paths stay hidden, whatever programs inside and outside do.
package temporary
