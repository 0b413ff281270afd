// Command victim is an agent that speaks ACP, and does what a prompt says.
package main

import (
	"bufio"
	"encoding/json"
	"os"
	"strconv"
	"strings"
)

type message struct {
	ID     json.RawMessage `json:"id,omitempty"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

// received are all lines so far, for the prompt "received".
var received []string

func main() {
	reader := bufio.NewReaderSize(os.Stdin, 1<<20)
	for {
		line, err := reader.ReadString('\n')
		if err != nil {
			return
		}
		if len(line) < 1<<16 {
			received = append(received, line)
		}
		var msg message
		if json.Unmarshal([]byte(line), &msg) != nil || msg.ID == nil || msg.Method == "" {
			continue
		}
		answer(msg)
	}
}

func answer(msg message) {
	result := map[string]any{}
	switch msg.Method {
	case "initialize":
		var params struct{ ProtocolVersion int }
		_ = json.Unmarshal(msg.Params, &params)
		result["protocolVersion"] = params.ProtocolVersion
		result["authMethods"] = []any{
			map[string]any{"id": "own", "name": "Own", "_meta": map[string]any{
				"terminal-auth": map[string]any{"command": "sh"}, "other": 1,
			}},
			map[string]any{"id": "login", "name": "Log in", "type": "terminal", "env": map[string]any{"HOME": "/tmp"}},
		}
	case "session/new":
		result["sessionId"] = "one"
	case "session/prompt":
		var params struct{ Prompt []struct{ Text string } }
		_ = json.Unmarshal(msg.Params, &params)
		result["stopReason"], result["said"] = "end_turn", do(params.Prompt[0].Text)
	}
	data, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": msg.ID, "result": result})
	say(string(data))
}

func say(line string) { _, _ = os.Stdout.WriteString(line + "\n") }

// do does what a prompt says.
func do(prompt string) string {
	verb, rest, _ := strings.Cut(prompt, " ")
	switch verb {
	case "write":
		if err := os.WriteFile(rest, []byte("agent\n"), 0o666); err != nil {
			return err.Error()
		}
		return "written"
	case "say":
		say(rest)
	case "fill": // a message of so many bytes
		n, _ := strconv.Atoi(rest)
		say(`{"jsonrpc":"2.0","method":"session/update","params":{"x":"` + strings.Repeat("x", n) + `"}}`)
	case "count":
		return strconv.Itoa(len(rest))
	case "received":
		return strings.Join(received, "")
	case "die":
		status, _ := strconv.Atoi(rest)
		os.Exit(status)
	}
	return "done"
}
