// Package agents tests what this program is to agents and to their editors:
// a server of tools by MCP, and the process between both by ACP.
package agents
