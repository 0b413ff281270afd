package darwin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/libsystem"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/handshake"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// Backend confines by Seatbelt. Its fields are set before the first use and not
// changed after it.
type Backend struct {
	// Executable is the path of this very binary.
	Executable string
	// Closed are the sidecar's own directories. A session sees only its own
	// files in them.
	Closed []string
	// Fixed are the sidecar's own files, which no session may write.
	Fixed []string
	// Known is the file for what is found out about this macOS; empty keeps
	// nothing.
	Known string
	// Logger logs failures to track a session, and what macOS does not take of the
	// profile; nil discards them.
	Logger *slog.Logger

	denials  denialStream
	prepared sync.Once
	compiler compiler
}

// dialect returns what the compiler of this macOS takes of profiles.
func (b *Backend) dialect(ctx context.Context) Finding {
	b.prepared.Do(func() {
		b.compiler.file, b.compiler.system, b.compiler.try, b.compiler.log = b.Known, system, b.try, b.logger()
	})
	return b.compiler.find(ctx)
}

// Name is "darwin".
func (*Backend) Name() string { return "darwin" }

// Likely confines nothing: a stage is started in the same way for all policies.
func (*Backend) Likely() platform.Confinement { return platform.Confinement{} }

// Stage runs this very binary again.
func (b *Backend) Stage() (string, []string) {
	return b.Executable, []string{"sandbox-sidecar", "stage"}
}

// Confine turns the policy into a plan for the stage. For a policy that
// restricts nothing, the plan only makes processes recognisable.
func (b *Backend) Confine(p *policy.Policy, hooks platform.Hooks) (platform.Confinement, error) {
	if err := outsideOfSandboxes(); err != nil {
		return platform.Confinement{}, fmt.Errorf("%w: %w", platform.ErrUnavailable, err)
	}
	if hooks.Learn != nil {
		return platform.Confinement{}, fmt.Errorf(
			"%w: macOS cannot report an access before it is denied, so it cannot be learned", platform.ErrUnavailable)
	}
	host := Host{Tag: "sandbox-sidecar", Closed: b.Closed, Fixed: b.Fixed}
	if hooks.Mark != nil {
		host.Fingerprint = hooks.Mark.Fingerprint()
		host.Tag += "-" + host.Fingerprint.ID
	}
	plan := TrackOnly(host.Fingerprint, host.Tag)
	if p.Restricted {
		plan = Translate(p, host)
	}
	waiting, cancel := context.WithTimeout(context.Background(), learnTimeout)
	found := b.dialect(waiting)
	cancel()
	if found.Refusal != "" && p.Restricted {
		return platform.Confinement{}, fmt.Errorf("%w: %w", platform.ErrUnavailable, &refusal{found.Refusal})
	}
	plan.Dialect = found.Dialect
	var way *reach
	if plan.Requested.Hosts && hooks.Mark != nil { // otherwise nothing is executed
		var err error
		if way, err = b.planHosts(&plan, p, hooks); err != nil {
			return platform.Confinement{}, err
		}
	}
	orders, err := json.Marshal(plan)
	if err != nil {
		return platform.Confinement{}, fmt.Errorf("write plan: %w", err)
	}
	confinement := platform.Confinement{Orders: orders, Environ: way.environ()}
	if hooks.Mark != nil {
		confinement.Descriptors = []platform.Descriptor{{Kind: passedWaiting, Required: true}}
		confinement.Supervise = func(handover platform.Handover) (platform.Supervision, error) {
			// The stage passes a file only to say that it waits: it is confined
			// now and has executed nothing.
			handover.Close()
			if doubt := hooks.Mark.Recognise(); doubt != nil {
				b.logger().Error("a session's processes are not recognised by their sandbox; detached ones may "+
					"survive its end", "error", doubt)
			}
			end := way.admit()
			if hooks.Denied == nil || plan.TrackOnly || !plan.Requested.Denials {
				return supervision{end}, nil
			}
			unwatch := b.denials.watch(b.logger(), plan.Tag, func(d Denial) {
				if reported, known := d.Report(); known {
					hooks.Denied(reported)
				}
			})
			return supervision{func() {
				end()
				unwatch()
			}}, nil
		}
	}
	return confinement, nil
}

func (b *Backend) logger() *slog.Logger {
	if b.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return b.Logger
}

// passedWaiting is a file of which nothing is used: the stage passes it to say
// that it waits.
const passedWaiting handshake.Passed = "file that says that the stage waits"

// supervision of a session that the kernel alone confines. It only reads the
// denials from the log.
type supervision struct{ end func() }

func (s supervision) Close() error {
	s.end()
	return nil
}

// outsideOfSandboxes returns an error if this process is in a sandbox. Its
// children are in it too, and macOS does not allow another.
func outsideOfSandboxes() error {
	answer, err := libsystem.Check(os.Getpid(), "", libsystem.FilterNone, "")
	if err != nil {
		return err
	}
	if answer != 0 {
		return errors.New("this process is already in a sandbox, and macOS allows only one")
	}
	return nil
}

// Probe confines a process that is discarded, by a policy that grants nothing,
// and reports what it has proved from inside.
func (b *Backend) Probe(ctx context.Context) map[string]platform.Protection {
	strictest := &policy.Policy{
		Restricted: true,
		Protected:  []policy.Protected{{Path: "/private/tmp/sandbox-sidecar-probe"}},
		OnDenied:   policy.Report,
	}
	confinement, err := b.Confine(strictest, platform.Hooks{})
	if err != nil {
		return absent(err)
	}
	enforcement, err := platform.ProbeStage(ctx, b, confinement)
	if err != nil {
		return absent(fmt.Errorf("confine a process for a test: %w", err))
	}
	b.dialect(ctx).add(enforcement.Protections)
	return enforcement.Protections
}
