package spawn

import (
	"errors"

	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn/prompt"
)

// atPrompt shows in an interactive shell what its session was refused. A nil one
// shows nothing.
type atPrompt struct {
	running *running
	board   *prompt.Board[Denial]
	say     func(Denial) string
}

// tellAtPrompt has the shell show what is refused, if it can. Without that the
// refusals are told when the shell ends.
func (a *attempt) tellAtPrompt() {
	r := a.running
	if a.request.AtPrompt == nil || a.request.shared != nil || r.denials == nil || !prompt.Shows(a.request.Program) {
		return
	}
	dir, err := a.makeOwnDir("refusals before prompts")
	var board *prompt.Board[Denial]
	if err == nil && !fsguard.Local(dir) {
		err = errors.New("their directory is on a file system that may not answer")
	}
	if err == nil {
		board, err = prompt.New[Denial](dir)
	}
	if err != nil {
		r.log.Info("refusals are not shown before prompts", "error", err)
		return
	}
	r.told = &atPrompt{running: r, board: board, say: a.request.AtPrompt}
	r.kept.Soon(r.told.numbered)
	own := ""
	if a.request.Policy.Environment.Allows("PROMPT_COMMAND") {
		own = lookUp(lastOfEach(a.request.Env), "PROMPT_COMMAND")
	}
	a.own = append(a.own, prompt.Environ(board.Path(), own)...)
	a.target.Order.Argv = prompt.Argv(a.request.Program, a.target.Order.Argv)
}

// denied shows a denial before the next prompt.
func (p *atPrompt) denied(d Denial) {
	if p == nil {
		return
	}
	d.PID, d.Count, d.Number = 0, 1, 0
	known := d // it may have a number from an earlier time
	known.Number = p.running.kept.Number(d.Denial)
	p.board.Add(d, p.say(known))
}

// numbered says of those that no prompt has shown yet what their numbers are.
func (p *atPrompt) numbered() {
	for _, d := range p.board.Pending() {
		known := d
		if known.Number = p.running.kept.Number(d.Denial); known.Number > 0 {
			p.board.Replace(d, p.say(known))
		}
	}
}

// end shows nothing any more.
func (p *atPrompt) end() {
	if p != nil {
		p.board.Close()
	}
}
