// Package refusals keeps what the sessions of each project were refused last, for
// "sandbox-sidecar allow".
//
// A [Book] is a directory with a file for each project. [Session] adds to it,
// [Read] reads it. Files are bounded in size and age, and no session may write
// them. What is in them was chosen by sessions nevertheless: it is data.
package refusals

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
)

const (
	// version is that of the files' format. A file of another version stays as it
	// is: a newer sidecar wrote it.
	version = 1
	// maxKept bounds the refusals of a project, and maxSize the bytes of its file.
	maxKept = 100
	maxSize = 256 << 10
	// maxText bounds each text of a refusal, in bytes. It is PATH_MAX of Linux: a
	// longer path cannot be written into settings either.
	maxText = 4096
	// maxAge is how long a refusal is kept.
	maxAge = 7 * 24 * time.Hour
	// maxProjects bounds the files.
	maxProjects = 200
	// lockTimeout bounds the wait for another sidecar. A write takes milliseconds.
	lockTimeout = 2 * time.Second
)

// Refusal is an access that sessions of a project were refused.
type Refusal struct {
	// Denial is the access; its Count is of all times. The process id is not kept.
	platform.Denial
	// Number names the refusal in its project, for as long as it is kept. Later
	// ones have higher numbers.
	Number int
	// Kind is "terminal" or "tool".
	Kind string
	// Under is what the session ran under, beside the settings.
	Under Under
	// Lacking says why the session had no access although its settings grant it;
	// "" if they do not.
	Lacking string
	// Last is when it happened last.
	Last time.Time
	// Leader is the session that was refused it last.
	Leader Leader
}

// Under is what a command line says of a session's sandbox. The zero value says
// nothing.
type Under struct {
	// Mode is of --mode, and Agent the name of the agent that was run; "" for none.
	Mode, Agent string
	// Network: --network gave the agent the network of the settings.
	Network bool
}

// Leader is the program that a session was started with.
type Leader struct {
	// PID is its process id; 0 if it is not known.
	PID int
	// Started identifies the process together with PID.
	Started string
	// Program is its path.
	Program string
}

// same reports whether both are about the same access under the same command
// line, whoever tried it.
func (r *Refusal) same(other *Refusal) bool {
	return r.Kind == other.Kind && r.Under == other.Under && keyOf(r.Denial) == keyOf(other.Denial)
}

type key struct {
	access                         platform.Refused
	target, detail, greeting, name string
	datagram                       bool
}

func keyOf(d platform.Denial) key {
	return key{d.Access, d.Target, d.Detail, d.Greeting, d.Name, d.Datagram}
}

// quoted is a text in a file: JSON cannot hold every file name.
type quoted string

func (q quoted) MarshalJSON() ([]byte, error) { return json.Marshal(strconv.QuoteToASCII(string(q))) }

func (q *quoted) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return err
	}
	plain, err := strconv.Unquote(text)
	*q = quoted(plain)
	return err
}

// entry is a refusal in a file.
type entry struct {
	Number   int       `json:"number"`
	Last     time.Time `json:"last"`
	Kind     string    `json:"kind"`
	Mode     string    `json:"mode,omitempty"`
	Agent    quoted    `json:"agent,omitempty"`
	Network  bool      `json:"network,omitempty"`
	Access   string    `json:"access"`
	Target   quoted    `json:"target"`
	Name     quoted    `json:"name,omitempty"`
	Process  quoted    `json:"process,omitempty"`
	Detail   quoted    `json:"detail,omitempty"`
	Command  quoted    `json:"command,omitempty"`
	Greeting quoted    `json:"greeting,omitempty"`
	Lacking  quoted    `json:"lacking,omitempty"`
	Source   string    `json:"source,omitempty"`
	Worktree string    `json:"worktree,omitempty"`
	Datagram bool      `json:"datagram,omitempty"`
	Count    int       `json:"count"`
	PID      int       `json:"pid,omitempty"`
	Started  string    `json:"started,omitempty"`
	Program  quoted    `json:"program,omitempty"`
}

type content struct {
	Version int     `json:"version"`
	Project quoted  `json:"project"`
	Next    int     `json:"next"` // the number of the next refusal
	List    []entry `json:"list"` // oldest first
}

func (e *entry) refusal() Refusal {
	return Refusal{
		Denial: platform.Denial{
			Access: platform.Refused(e.Access), Target: string(e.Target), Name: string(e.Name),
			Process: string(e.Process), Detail: string(e.Detail), Command: string(e.Command),
			Greeting: string(e.Greeting), Datagram: e.Datagram, Count: e.Count, Source: platform.Source(e.Source),
			Worktree: platform.Worktree(e.Worktree),
		},
		Number: e.Number, Kind: e.Kind, Lacking: string(e.Lacking), Last: e.Last,
		Under:  Under{Mode: e.Mode, Agent: string(e.Agent), Network: e.Network},
		Leader: Leader{PID: e.PID, Started: e.Started, Program: string(e.Program)},
	}
}

func (r *Refusal) entry() entry {
	return entry{
		Number: r.Number, Last: r.Last, Kind: r.Kind,
		Mode: r.Under.Mode, Agent: quoted(r.Under.Agent), Network: r.Under.Network,
		Access: string(r.Access), Target: quoted(r.Target),
		Name: quoted(r.Name), Process: quoted(r.Process), Detail: quoted(r.Detail), Command: quoted(r.Command),
		Greeting: quoted(r.Greeting), Lacking: quoted(r.Lacking), Source: string(r.Source), Datagram: r.Datagram,
		Worktree: string(r.Worktree), Count: r.Count,
		PID: r.Leader.PID, Started: r.Leader.Started, Program: quoted(r.Leader.Program),
	}
}

// fits reports whether no text of it is too long to be kept.
func (r *Refusal) fits() bool {
	for _, text := range []string{
		r.Target, r.Name, r.Process, r.Detail, r.Command, r.Greeting, r.Lacking, r.Leader.Program, r.Under.Agent,
	} {
		if len(text) > maxText {
			return false
		}
	}
	return true
}

var errNewer = errors.New("a newer version of this program wrote it: use that one")

// fileOf is the file of a project.
func fileOf(dir, project string) string {
	sum := sha256.Sum256([]byte(project))
	return filepath.Join(dir, hex.EncodeToString(sum[:16])+".json")
}

// Read returns what sessions of a project were refused, newest first, from the
// directory of a Book. If nothing was kept, the list is empty. A file that cannot
// be understood holds nothing; one that a newer version wrote is an error.
func Read(dir, project string) ([]Refusal, error) {
	if dir == "" {
		return nil, nil
	}
	kept, err := read(fileOf(dir, project))
	if err != nil {
		return nil, fmt.Errorf("read refusals: %w", err)
	}
	list := []Refusal{}
	for _, e := range slices.Backward(kept.List) {
		list = append(list, e.refusal())
	}
	return list, nil
}

// read reads a file, without what is too old.
func read(path string) (content, error) {
	empty := content{Version: version, Next: 1}
	file, err := fsguard.ReadFile(path, maxSize)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return empty, nil
	case err != nil:
		return empty, err
	}
	var kept content
	if err := json.Unmarshal(file.Data, &kept); err != nil {
		return empty, nil
	}
	if kept.Version > version {
		return empty, errNewer
	}
	// A negative age is a clock that was set back.
	kept.List = slices.DeleteFunc(kept.List, func(e entry) bool {
		return time.Since(e.Last).Abs() > maxAge || e.Number < 1
	})
	for _, e := range kept.List {
		kept.Next = max(kept.Next, e.Number+1)
	}
	if len(kept.List) == 0 {
		kept.Next = 1
	}
	return kept, nil
}

// merge adds refusals to a file's, each with its number.
func (c *content) merge(list []*Refusal) {
	for _, r := range list {
		at := slices.IndexFunc(c.List, func(e entry) bool {
			known := e.refusal()
			return known.same(r)
		})
		r.Number = c.Next
		count := r.Count
		if at >= 0 {
			r.Number, count = c.List[at].Number, count+c.List[at].Count
			c.List = slices.Delete(c.List, at, at+1)
		} else {
			c.Next++
		}
		e := r.entry()
		e.Count = count
		c.List = append(c.List, e)
	}
	c.List = c.List[max(0, len(c.List)-maxKept):]
}

// write adds refusals to a project's file.
func write(dir, project string, list []*Refusal) error {
	if err := fsguard.MkdirAll(dir, 0o700); err != nil { // this also finds out whether the file system answers
		return err
	}
	unlock, err := fsguard.Lock(filepath.Join(dir, "lock"), lockTimeout)
	if err != nil {
		return err
	}
	defer unlock()
	path := fileOf(dir, project)
	kept, err := read(path)
	if err != nil {
		return err
	}
	if len(kept.List) == 0 {
		fsguard.Prune(dir, ".json", maxProjects-1, maxAge)
	}
	kept.Version, kept.Project = version, quoted(project)
	kept.merge(list)
	for {
		data, err := json.Marshal(kept)
		if err != nil {
			return err
		}
		if len(data) < maxSize || len(kept.List) == 0 {
			return fsguard.Replace(path, append(data, '\n'), 0o600)
		}
		kept.List = kept.List[(len(kept.List)+1)/2:]
	}
}
