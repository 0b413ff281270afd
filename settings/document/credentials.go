package document

import (
	"maps"
	"reflect"
	"slices"

	"github.com/tailscale/hujson"
)

// CredentialsKey is the key of Sandbox.Credentials.
const CredentialsKey = "credentials"

// credentials decodes an object of credentials. An entry with a mistake has no
// hosts, so that its secret is kept away. One that is null is nil.
func (d *decoder) credentials(value hujson.Value, field reflect.Value, key string) bool {
	object, ok := value.Value.(*hujson.Object)
	if !ok {
		d.report(value, SeverityError, key, "expected an object, found %s", describe(value))
		return false
	}
	found := map[string]*Credential{}
	for _, member := range object.Members {
		name := memberName(member)
		if _, twice := found[name]; twice {
			d.report(member.Name, SeverityError, key, "%q is written twice; the last one counts", name)
		}
		found[name] = d.credential(member, key+"."+name)
	}
	field.Set(reflect.ValueOf(found))
	return true
}

func (d *decoder) credential(member hujson.ObjectMember, key string) *Credential {
	if member.Value.Value.Kind() == 'n' {
		return nil
	}
	c := &Credential{Hosts: []string{}, At: d.at(member.Name.StartOffset)}
	object, ok := member.Value.Value.(*hujson.Object)
	if !ok {
		d.report(member.Value, SeverityError, key, `expected an object as {"hosts": ["api.example.com"]}, found %s`,
			describe(member.Value))
		return c
	}
	before := len(d.Problems)
	read := Credential{}
	d.fields(object, reflect.ValueOf(&read).Elem(), key+".", map[string]Span{})
	wrong := slices.ContainsFunc(d.Problems[before:], func(p Diagnostic) bool { return p.Severity == SeverityError })
	if wrong {
		return c // nobody knows what was meant
	}
	if read.Hosts == nil {
		d.report(member.Value, SeverityError, key, `"hosts" is missing; with [] the secret is only kept away`)
		return c
	}
	read.At = c.At
	return &read
}

// MergeCredentials returns the entries of two layers. Those of the upper one count,
// and take an entry away if they are nil. file is where they stand.
func MergeCredentials(lower, upper map[string]*Credential, file string) map[string]*Credential {
	merged := cloneCredentials(lower)
	for name, c := range cloneCredentials(upper) {
		if c == nil {
			delete(merged, name)
			continue
		}
		c.File = file
		merged[name] = c
	}
	return merged
}

func cloneCredentials(list map[string]*Credential) map[string]*Credential {
	copied := map[string]*Credential{}
	for _, name := range slices.Sorted(maps.Keys(list)) {
		c := list[name]
		if c == nil {
			copied[name] = nil
			continue
		}
		one := *c
		one.Hosts, one.Command = slices.Clone(c.Hosts), slices.Clone(c.Command)
		copied[name] = &one
	}
	return copied
}
