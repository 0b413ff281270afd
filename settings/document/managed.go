package document

import (
	"slices"

	"github.com/tailscale/hujson"
)

// Managed are the blocks of an organisation's file.
type Managed struct {
	// Defaults are below the user's own settings.
	Defaults *Block
	// Required bounds what all other settings give.
	Required *Block
}

// DecodeManaged reads one file of an organisation: the objects "defaults" and
// "required", whose keys are those of a "terminal.sandbox" block. The second
// result is not nil if nothing could be read at all. A mistake beside the two
// is in the problems of Required, as it may have been meant for that.
func DecodeManaged(data []byte, platform string) (Managed, *Diagnostic) {
	var found Managed
	for _, part := range []struct {
		name string
		to   **Block
	}{{"defaults", &found.Defaults}, {"required", &found.Required}} {
		d, root, problem := parse(data, platform, Sidecar)
		if problem != nil {
			return Managed{}, problem
		}
		d.managed(root, part.name, "")
		for _, member := range root.Members {
			name := memberName(member)
			if !slices.Contains(platformNames, name) {
				continue
			}
			object := d.object(member.Value, name)
			switch {
			case object == nil:
			case name == PlatformBlock(platform):
				d.managed(object, part.name, name+".")
			default:
				d.otherManaged(object, part.name, name)
			}
		}
		*part.to = d.Block
	}
	return found, nil
}

// managed decodes one of the two objects. The decoder of "required" checks what
// is beside them.
func (d *decoder) managed(root *hujson.Object, name, prefix string) {
	d.bounds = name == "required"
	if object := d.object(d.member(root, name, prefix), prefix+name); object != nil {
		d.sandbox(object)
	}
	if !d.bounds {
		return
	}
	known := []string{"defaults", "required", "$schema"}
	if prefix == "" {
		known = append(known, platformNames...)
	}
	for _, member := range root.Members {
		if key := memberName(member); !slices.Contains(known, key) {
			d.report(member.Name, SeverityError, "",
				`%q is in the wrong place; settings belong in "defaults" or "required"`, prefix+key)
		}
	}
}

// otherManaged checks the block of another platform.
func (d *decoder) otherManaged(object *hujson.Object, name, platform string) {
	aside := &decoder{Block: &Block{Spans: map[string]Span{}}, lines: d.lines, platform: d.platform, owner: d.owner}
	aside.managed(object, name, platform+".")
	d.Problems = append(d.Problems, aside.Problems...)
}
