//go:build unix

package main

import (
	"fmt"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
)

// exampleFrame is a message for the reference, as indented JSON.
type exampleFrame struct {
	Title string
	Text  string
}

// message is a JSON-RPC message in the order in which people write it.
type message struct {
	Version string `json:"jsonrpc"`
	ID      int    `json:"id,omitempty"`
	Method  string `json:"method,omitempty"`
	Params  any    `json:"params,omitempty"`
	Result  any    `json:"result,omitempty"`
}

// request, result and notification take a descriptor, so that an example with
// other types does not compile.
func request[P, R any](m protocol.Request[P, R], id int, params P) message {
	return message{Version: "2.0", ID: id, Method: m.Method, Params: params}
}

func result[P, R any](_ protocol.Request[P, R], id int, value R) message {
	return message{Version: "2.0", ID: id, Result: value}
}

func notification[P any](m protocol.Notification[P], params P) message {
	return message{Version: "2.0", Method: m.Method, Params: params}
}

const (
	exampleSession = "5f0c1d5e-3c0b-4c1e-9d55-0a6d3a5b7c11"
	examplePolicy  = "b1946ac92492d234"
	exampleDigest  = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
)

// exampleFrames returns the examples by method.
func exampleFrames() (map[string][]exampleFrame, error) {
	const requestTitle, resultTitle = "Request", "Answer"
	frames := map[string][]exampleFrame{}
	for _, ex := range []struct {
		method, title string
		message       message
	}{
		{protocol.Initialize.Method, requestTitle, request(protocol.Initialize, 1, exampleInitialize())},
		{protocol.Initialize.Method, resultTitle, result(protocol.Initialize, 1, exampleInitializeResult())},
		{protocol.Spawn.Method, requestTitle, request(protocol.Spawn, 2, protocol.SpawnParams{
			Kind: protocol.Tool, Cwd: "/home/ada/engine", Command: "go test ./...",
		})},
		{protocol.Spawn.Method, resultTitle, result(protocol.Spawn, 2, exampleSpawnResult())},
		{protocol.Output.Method, "Notification", notification(protocol.Output, protocol.OutputParams{
			SessionID: exampleSession, Data: []byte("ok  \tengine\t0.042s\r\n"),
		})},
		{protocol.Input.Method, "Notification", notification(protocol.Input, protocol.InputParams{
			SessionID: exampleSession, Data: []byte("ls\n"),
		})},
		{protocol.Resize.Method, "Notification", notification(protocol.Resize, protocol.ResizeParams{
			SessionID: exampleSession, Cols: 120, Rows: 40,
		})},
		{protocol.Ack.Method, "Notification", notification(protocol.Ack, protocol.AckParams{
			SessionID: exampleSession, Bytes: 65536,
		})},
		{protocol.Signal.Method, requestTitle, request(protocol.Signal, 4, protocol.SignalParams{
			SessionID: exampleSession, Signal: "SIGINT",
		})},
		{protocol.Wait.Method, resultTitle, result(protocol.Wait, 5, protocol.ExitStatus{ExitCode: new(0)})},
		{protocol.Exited.Method, "Notification", notification(protocol.Exited, protocol.ExitedParams{
			SessionID: exampleSession, ExitCode: new(0),
		})},
		{protocol.Reviewed.Method, "Notification", notification(protocol.Reviewed, protocol.ReviewParams{
			SessionID: exampleSession, Review: []protocol.Finding{exampleFinding()},
		})},
		{protocol.Denied.Method, "Notification", notification(protocol.Denied, exampleDenied())},
		{protocol.LimitReached.Method, "Notification", notification(protocol.LimitReached, protocol.LimitParams{
			SessionID: exampleSession, Setting: "limits.memory",
			Message: `The kernel ended the command at 8192 MB of memory; "limits.memory" sets it.`,
		})},
		{protocol.RequestAccess.Method, requestTitle, request(protocol.RequestAccess, 6, exampleQuestion())},
		{protocol.RequestAccess.Method, resultTitle, result(protocol.RequestAccess, 6, protocol.RequestAccessResult{
			Decision: protocol.DecisionSession,
		})},
		{protocol.CancelRequest.Method, "Notification", notification(protocol.CancelRequest,
			protocol.CancelParams{ID: protocol.RawJSON("6")})},
		{protocol.PolicyExplain.Method, requestTitle, request(protocol.PolicyExplain, 7, protocol.PolicyExplainParams{
			ProjectDir: "/home/ada/engine", Kind: protocol.Tool, Access: protocol.AccessRead, Target: "~/data/model",
		})},
		{protocol.ProjectTrust.Method, requestTitle, request(protocol.ProjectTrust, 8, protocol.ProjectTrustParams{
			ProjectDir: "/home/ada/engine", Digest: exampleDigest,
		})},
		{protocol.SettingsDiagnostics.Method, "Notification", notification(protocol.SettingsDiagnostics,
			protocol.DiagnosticsParams{File: "/home/ada/engine/.zed/settings.json", Diagnostics: []protocol.Diagnostic{{
				Line: 4, Column: 7, Severity: protocol.SeverityError, Key: "allow_network",
				Message: "expected true or false, found a string",
			}}})},
		{protocol.Close.Method, requestTitle, request(protocol.Close, 3, protocol.CloseParams{
			SessionID: exampleSession, GraceMs: new(250),
		})},
		{protocol.Close.Method, resultTitle, result(protocol.Close, 3, protocol.CloseResult{
			Signal: new("SIGHUP"), Killed: 2, ElapsedMs: 12,
		})},
	} {
		text, err := marshalPlain(ex.message, "  ")
		if err != nil {
			return nil, fmt.Errorf("write an example: of %s: %w", ex.method, err)
		}
		frames[ex.method] = append(frames[ex.method], exampleFrame{Title: ex.title, Text: string(text)})
	}
	return frames, nil
}

func exampleSuggestion() *protocol.Suggestion {
	return &protocol.Suggestion{
		Setting: "additional_read_only_paths", Value: protocol.RawJSON(`"/home/ada/data/model"`),
		Message:     `add "/home/ada/data/model" to "additional_read_only_paths"`,
		Instruction: `add "/home/ada/data/model" to "additional_read_only_paths"`,
	}
}

func exampleDenied() protocol.DeniedParams {
	return protocol.DeniedParams{
		SessionID: exampleSession, Access: "read", Target: "/home/ada/data/model", Count: 1,
		Message: `The sandbox refused to let "python3" read "/home/ada/data/model". ` +
			`To allow it: add "/home/ada/data/model" to "additional_read_only_paths".`,
		Line:    `read "/home/ada/data/model" by "python3"`,
		Process: &protocol.Process{PID: 48220, Name: "python3"}, Suggestion: exampleSuggestion(),
	}
}

func exampleFinding() protocol.Finding {
	return protocol.Finding{
		Path: "/home/ada/engine/Makefile", Change: "changed", Why: "make runs its commands",
		Message: `"/home/ada/engine/Makefile" was changed: make runs its commands`,
	}
}

func exampleQuestion() protocol.RequestAccessParams {
	return protocol.RequestAccessParams{
		SessionID: exampleSession, Access: "read", Target: "/home/ada/data/model",
		Message: `"python3" wants to read "/home/ada/data/model", and waits for your answer.`,
		Process: &protocol.Process{PID: 48220, Name: "python3"}, Suggestion: exampleSuggestion(),
		Choices: []protocol.Decision{protocol.DecisionDeny, protocol.DecisionOnce, protocol.DecisionSession},
	}
}

func exampleInitialize() protocol.InitializeParams {
	return protocol.InitializeParams{
		ProcessID:        new(4711),
		ProtocolVersion:  protocol.Version,
		ClientInfo:       &protocol.ClientInfo{Name: "example-editor", Version: "1.2.0"},
		WorkspaceFolders: []protocol.WorkspaceFolder{{Path: "/home/ada/engine", Name: "engine"}},
		Capabilities:     protocol.ClientCapabilities{FlowControl: true},
	}
}

func exampleInitializeResult() protocol.InitializeResult {
	return protocol.InitializeResult{
		ServerInfo:      protocol.ClientInfo{Name: "sandbox-sidecar", Version: "0.1.0"},
		ProtocolVersion: protocol.Version,
		Capabilities: protocol.ServerCapabilities{
			Platform:    "linux",
			Kinds:       []protocol.Kind{protocol.Terminal, protocol.Tool},
			SpawnFields: protocol.SpawnFields(),
			Enforcement: protocol.Protections{
				"filesystem": exampleFilesystem(),
				"unix_sockets": {
					Status: protocol.Degraded, Mechanism: "seccomp",
					Detail: "sockets of outside processes are refused as a whole", Fix: "use a newer kernel",
				},
			},
		},
	}
}

func exampleFilesystem() protocol.Protection {
	return protocol.Protection{
		Status: protocol.Enforced, Mechanism: "landlock",
		Detail: "files outside the grants are refused",
	}
}

func exampleSpawnResult() protocol.SpawnResult {
	return protocol.SpawnResult{
		SessionID: exampleSession,
		PID:       48213,
		Argv:      []string{"/bin/bash", "-c", "go test ./..."},
		PolicyID:  examplePolicy,
		Sandbox: protocol.SandboxReport{
			Applied: true, Status: protocol.SandboxFull,
			Protections: protocol.Protections{"filesystem": exampleFilesystem()},
			Warnings:    []string{},
		},
		Tracking:    protocol.Tracking{Mechanism: "cgroup", Guarantee: true},
		Environment: protocol.EnvironmentLog{Dropped: []string{"AWS_SECRET_ACCESS_KEY"}},
	}
}
