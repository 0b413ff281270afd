//go:build unix

package mcp

import (
	"fmt"
	"strings"
)

// RunInput are the arguments of run.
type RunInput struct {
	Command        string `json:"command" jsonschema:"a line for the shell"`
	Cwd            string `json:"cwd,omitempty" jsonschema:"working directory; without it, the project directory"`
	TimeoutSeconds int    `json:"timeout_seconds,omitempty" jsonschema:"ends the command; usually 120, at most 3600"`
	Stdin          string `json:"stdin,omitempty" jsonschema:"its standard input; without it, that is empty"`
	SeparateStderr bool   `json:"separate_stderr,omitempty" jsonschema:"returns standard error apart, as stderr"`
	MaxOutputBytes int    `json:"max_output_bytes,omitempty" jsonschema:"of each stream; usually 65536, most 1048576"`
}

// StartInput are the arguments of start.
type StartInput struct {
	Command        string `json:"command" jsonschema:"a line for the shell"`
	Cwd            string `json:"cwd,omitempty" jsonschema:"working directory; without it, the project directory"`
	TimeoutSeconds int    `json:"timeout_seconds,omitempty" jsonschema:"ends the command; at most 3600, usually never"`
	Stdin          bool   `json:"stdin,omitempty" jsonschema:"true: the tool input writes to its standard input"`
	SeparateStderr bool   `json:"separate_stderr,omitempty" jsonschema:"returns standard error apart, as stderr"`
}

// StartOutput is the result of start.
type StartOutput struct {
	ID       string   `json:"id" jsonschema:"names the command for output and stop"`
	Warnings []string `json:"warnings,omitempty" jsonschema:"what to know about the sandbox"`
}

func (o StartOutput) text() string {
	return strings.Join(append([]string{"started " + o.ID}, labelled("warning: ", o.Warnings)...), "\n")
}

// OutputInput are the arguments of output.
type OutputInput struct {
	ID          string `json:"id" jsonschema:"what start returned"`
	WaitSeconds int    `json:"wait_seconds,omitempty" jsonschema:"waits so long for the end, at most 60"`
}

// InputInput are the arguments of input.
type InputInput struct {
	ID         string `json:"id" jsonschema:"what start returned"`
	Text       string `json:"text,omitempty" jsonschema:"what to write to its standard input, with line ends"`
	CloseStdin bool   `json:"close_stdin,omitempty" jsonschema:"true: its standard input ends after the text"`
}

// InputOutput is the result of input.
type InputOutput struct {
	Bytes int `json:"bytes" jsonschema:"how many bytes were sent; see the tool for which are dropped"`
}

func (o InputOutput) text() string { return fmt.Sprintf("sent it %d B", o.Bytes) }

// StopInput are the arguments of stop.
type StopInput struct {
	ID string `json:"id" jsonschema:"what start returned"`
}

// Result is how a command goes on.
type Result struct {
	Ended        bool      `json:"ended" jsonschema:"false: it runs"`
	ExitCode     *int      `json:"exit_code,omitempty" jsonschema:"once ended; 128 and its number if a signal did"`
	Signal       string    `json:"signal,omitempty" jsonschema:"the signal that ended it"`
	Background   int       `json:"background,omitempty" jsonschema:"how many of its processes still run"`
	Killed       int       `json:"killed,omitempty" jsonschema:"how many of its processes had to be killed at its end"`
	TimedOut     bool      `json:"timed_out,omitempty" jsonschema:"it was ended because its time was over"`
	SandboxEnded bool      `json:"sandbox_ended,omitempty" jsonschema:"all commands have ended with it"`
	Refused      []Refused `json:"refused,omitempty" jsonschema:"what the sandbox refused"`
	RefusedMore  int       `json:"refused_more,omitempty" jsonschema:"how much more it refused"`
	Changed      []string  `json:"changed,omitempty" jsonschema:"changed files that programs outside act on"`
	Limits       []string  `json:"limits,omitempty" jsonschema:"limits of the sandbox that it reached"`
	Warnings     []string  `json:"warnings,omitempty" jsonschema:"what to know about the sandbox"`
}

// RunOutput is the result of run, output and stop.
type RunOutput struct {
	Result
	Output    string `json:"output" jsonschema:"standard output, and standard error unless that is apart"`
	Stderr    string `json:"stderr,omitempty" jsonschema:"standard error, if it was asked for apart"`
	Truncated bool   `json:"truncated,omitempty" jsonschema:"the middle of the output is missing"`
	Replaced  int    `json:"replaced,omitempty" jsonschema:"how many bytes were no UTF-8, and were replaced"`
}

// take fills in what a command has printed, and forgets it.
func (o *RunOutput) take(c *command) {
	more := !o.Ended
	output, stderr := c.output.take(more), c.stderr.take(more)
	o.Output, o.Stderr = output.text, stderr.text
	o.Truncated, o.Replaced = output.truncated || stderr.truncated, output.replaced+stderr.replaced
}

// text is the output, and below it what happened.
func (o RunOutput) text() string {
	var lines []string
	if text := strings.TrimRight(o.Output, "\n"); text != "" {
		lines = append(lines, text)
	}
	if text := strings.TrimRight(o.Stderr, "\n"); text != "" {
		lines = append(lines, "[standard error:]", text)
	}
	if o.Replaced > 0 {
		lines = append(lines, fmt.Sprintf("[%d B that are no UTF-8 were replaced]", o.Replaced))
	}
	switch {
	case o.TimedOut:
		lines = append(lines, "[ended: its time was over]")
	case !o.Ended:
		lines = append(lines, "[it runs]")
	case o.Signal != "":
		lines = append(lines, fmt.Sprintf("[ended by %s]", o.Signal))
	case o.ExitCode != nil && (*o.ExitCode != 0 || lines == nil):
		lines = append(lines, fmt.Sprintf("[exit status %d]", *o.ExitCode))
	}
	switch {
	case o.SandboxEnded:
		lines = append(lines, "[the sandbox has ended with it, and with that all that commands had left running]")
	case o.Background == 1:
		lines = append(lines, "[one process of it still runs in the background]")
	case o.Background > 1:
		lines = append(lines, fmt.Sprintf("[%d processes of it still run in the background]", o.Background))
	}
	if o.Killed > 0 {
		lines = append(lines, fmt.Sprintf("[processes of it that were killed at its end: %d]", o.Killed))
	}
	for _, refused := range o.Refused {
		lines = append(lines, "[the sandbox refused: "+refused.Message+"]")
		if refused.ToAllow != "" {
			lines = append(lines, "[only the user can allow it: "+refused.ToAllow+"]")
		}
		if refused.Hint != "" {
			lines = append(lines, "["+refused.Hint+"]")
		}
	}
	if o.RefusedMore > 0 {
		lines = append(lines, fmt.Sprintf("[the sandbox refused %d more]", o.RefusedMore))
	}
	lines = append(lines, labelled("[limit: ", o.Limits, "]")...)
	lines = append(lines, labelled("[the user should check: ", o.Changed, "]")...)
	return strings.Join(append(lines, labelled("[warning: ", o.Warnings, "]")...), "\n")
}

// labelled puts a label before each line, and closing after it.
func labelled(label string, lines []string, closing ...string) []string {
	var list []string
	for _, line := range lines {
		list = append(list, label+line+strings.Join(closing, ""))
	}
	return list
}

// ExplainInput are the arguments of explain.
type ExplainInput struct {
	Access string `json:"access" jsonschema:"read, write, execute, connect_unix, connect, bind or sign"`
	Target string `json:"target" jsonschema:"a path, abstract:NAME, an address as example.org:443, or a key"`
}

// ExplainOutput is the result of explain.
type ExplainOutput struct {
	Allowed bool   `json:"allowed"`
	Target  string `json:"target" jsonschema:"the real target, with every symlink followed"`
	Reason  string `json:"reason"`
	Setting string `json:"setting,omitempty" jsonschema:"the key of the user's settings that decides or would allow it"`
	Value   string `json:"value,omitempty" jsonschema:"what the user would add to the setting"`
	ToAllow string `json:"to_allow,omitempty" jsonschema:"what the user would have to do to allow it"`
	Hint    string `json:"hint,omitempty"`
}

func (o ExplainOutput) text() string {
	verdict := "refused: "
	if o.Allowed {
		verdict = "allowed: "
	}
	lines := []string{verdict + o.Reason}
	if o.ToAllow != "" {
		lines = append(lines, "only the user can allow it: "+o.ToAllow)
	}
	if o.Hint != "" {
		lines = append(lines, o.Hint)
	}
	return strings.Join(lines, "\n")
}

// PolicyInput has no fields: policy takes no arguments.
type PolicyInput struct{}

// PolicyOutput is the result of policy.
type PolicyOutput struct {
	Project      string   `json:"project"`
	Sandboxed    bool     `json:"sandboxed" jsonschema:"false: commands are refused until the settings are fixed"`
	AllowNetwork bool     `json:"allow_network" jsonschema:"true: every host can be reached"`
	AllowedHosts []string `json:"allowed_hosts" jsonschema:"the hosts that can be reached if allow_network is false"`
	DeniedHosts  []string `json:"denied_hosts" jsonschema:"exceptions from allowed_hosts"`
	Write        []string `json:"write" jsonschema:"what can be written, with all that is below it"`
	Read         []string `json:"read" jsonschema:"what can be read, with all that is below it"`
	Protected    []string `json:"protected" jsonschema:"what cannot be changed although it is below a path of write"`
	Hidden       []string `json:"hidden" jsonschema:"what cannot be seen although it is below a path of read"`
	OnDenied     string   `json:"on_denied" jsonschema:"what happens when something is refused"`
}

func (o PolicyOutput) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "project: %s\n", o.Project)
	if !o.Sandboxed {
		b.WriteString("the settings leave the sandbox off: commands are refused\n")
	}
	network := "off, except the allowed hosts"
	if o.AllowNetwork {
		network = "on"
	}
	fmt.Fprintf(&b, "network: %s\n", network)
	for _, list := range []struct {
		title   string
		entries []string
	}{
		{"allowed hosts", o.AllowedHosts},
		{"denied hosts", o.DeniedHosts},
		{"may be written", o.Write},
		{"may be read", o.Read},
		{"protected", o.Protected},
		{"hidden", o.Hidden},
	} {
		if len(list.entries) > 0 {
			fmt.Fprintf(&b, "%s: %s\n", list.title, strings.Join(list.entries, ", "))
		}
	}
	return b.String()
}
