// Package audit tests the audit trail on the real binary.
package audit
