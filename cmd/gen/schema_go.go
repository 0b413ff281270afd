//go:build unix

package main

// schemaEmbed is settings/schema.go, which embeds the schema in the binary.
func schemaEmbed() []byte {
	return []byte("// " + marker + `

package settings

import _ "embed"

//go:embed schema.json
var schema string

// Schema is the JSON Schema (draft 7) of a settings file. Each call answers a copy.
func Schema() []byte { return []byte(schema) }
`)
}
