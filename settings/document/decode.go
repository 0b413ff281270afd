package document

import (
	"fmt"
	"reflect"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/tailscale/hujson"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
)

// Owner says whose keys a settings file holds.
type Owner int

const (
	// Editor: of an editor's file, only "terminal.sandbox" is meant for this
	// program.
	Editor Owner = iota
	// Sidecar: every key is meant for this program.
	Sidecar
	// Project: an editor's file that comes with a project.
	Project
)

// The names of the blocks for one system.
const (
	blockLinux   = "linux"
	blockMacOS   = "macos"
	blockWindows = "windows"
)

var platformNames = []string{blockLinux, blockMacOS, blockWindows}

// PlatformBlock is the name of the block for one system, which Go's name
// identifies; "" if there is none.
func PlatformBlock(platform string) string {
	switch platform {
	case "linux":
		return blockLinux
	case "darwin":
		return blockMacOS
	case "windows":
		return blockWindows
	}
	return ""
}

// Decode reads one settings file. The second result is not nil if nothing could
// be read at all. Mistakes inside the block are in Problems: the key or the
// list entry that they name does not count, and the rest does.
func Decode(data []byte, platform string, whose Owner) (*Block, *Diagnostic) {
	d, root, problem := parse(data, platform, whose)
	if root == nil {
		return d.Block, problem
	}
	d.block(root, "")
	if d.owner == Editor {
		d.agent(root, "")
	}
	var here *hujson.Object // the block of this platform
	for _, name := range platformNames {
		value := d.member(root, name, "")
		switch {
		case value.Value == nil:
		case name == PlatformBlock(platform):
			if here = d.object(value, name); here != nil {
				d.block(here, name+".")
				if d.owner == Editor {
					d.agent(here, name+".")
				}
			}
		default:
			d.otherPlatform(name, value)
		}
	}
	// What is misplaced weighs less if there are settings in the right place.
	d.strays(root, "")
	if d.owner == Editor {
		d.strayInAgent(valueOf(root, "agent"), "agent.")
		d.zed(root)
	}
	if here != nil {
		prefix := PlatformBlock(platform) + "."
		d.strays(here, prefix)
		if d.owner == Editor {
			d.strayInAgent(valueOf(here, "agent"), prefix+"agent.")
			d.variables(&hujson.Value{Value: here}, prefix)
		}
	}
	return d.Block, nil
}

// otherPlatform checks the block of another platform. The same file is often
// used on several machines, and the mistake would show only on the other one.
func (d *decoder) otherPlatform(name string, value hujson.Value) {
	object, ok := value.Value.(*hujson.Object)
	if !ok {
		if d.owner == Sidecar {
			d.object(value, name)
		}
		return // in an editor's file it is the editor's to report
	}
	aside := &decoder{
		Block: &Block{Spans: map[string]Span{}}, lines: d.lines, platform: d.platform, owner: d.owner,
		project: d.project,
	}
	aside.block(object, name+".")
	aside.strays(object, name+".")
	d.Problems = append(d.Problems, aside.Problems...)
	if name == blockWindows && len(aside.Spans) > 0 {
		d.report(value, SeverityInfo, "", "has no effect: on Windows the sidecar runs inside WSL, "+
			"where %q counts", blockLinux)
	}
}

type decoder struct {
	*Block
	lines    []int
	platform string
	owner    Owner
	project  bool
	// bounds: the block is what an organisation requires.
	bounds bool
}

// EmptyText is why an empty settings file does not count.
const EmptyText = "empty; write {} to ask for nothing"

// block decodes the "terminal.sandbox" of the root or of a platform's block,
// over what was decoded before.
func (d *decoder) block(root *hujson.Object, prefix string) {
	terminal := d.object(d.member(root, "terminal", prefix), prefix+"terminal")
	if terminal == nil {
		return
	}
	if d.owner == Editor {
		if argv := editorShell(terminal); argv != nil {
			d.EditorShell = argv
		}
	}
	sandbox := d.object(d.member(terminal, "sandbox", prefix+"terminal."), prefix+"terminal.sandbox")
	if sandbox != nil {
		d.sandbox(sandbox)
	}
}

// sandbox decodes the block itself, over what was decoded before.
func (d *decoder) sandbox(sandbox *hujson.Object) {
	var values Sandbox
	where := map[string]Span{}
	d.fields(sandbox, reflect.ValueOf(&values).Elem(), "", where)
	expandModes(&values, where)
	d.replaceModes(where)
	enableKinds(&values, where)
	for _, l := range allKeys() {
		if v, ok := l.Get(&values); ok {
			v, span := d.joinVariables(l, v, where[l.Name])
			l.Set(&d.Values, v)
			d.Spans[l.Name] = span
		} else if where[l.Name].Baseline {
			l.Clear(&d.Values)
			d.Spans[l.Name] = where[l.Name]
		}
	}
}

// editorShell reads Zed's "terminal.shell": {"program": "zsh"}, or
// {"with_arguments": {"program": "zsh", "args": ["-l"]}}. Anything else, such as
// "system", is nil; it is the editor's to complain about.
func editorShell(terminal *hujson.Object) []string {
	shell, _ := valueOf(terminal, "shell").Value.(*hujson.Object)
	if shell == nil {
		return nil
	}
	if with, ok := valueOf(shell, "with_arguments").Value.(*hujson.Object); ok {
		shell = with
	}
	program, ok := valueOf(shell, "program").Value.(hujson.Literal)
	if !ok || program.Kind() != '"' || program.String() == "" {
		return nil
	}
	argv := []string{program.String()}
	if args, ok := valueOf(shell, "args").Value.(*hujson.Array); ok {
		for _, element := range args.Elements {
			arg, ok := element.Value.(hujson.Literal)
			if !ok || arg.Kind() != '"' {
				return nil
			}
			argv = append(argv, arg.String())
		}
	}
	return argv
}

// valueOf is the last member of that name.
func valueOf(object *hujson.Object, name string) hujson.Value {
	var found hujson.Value
	for _, member := range object.Members {
		if memberName(member) == name {
			found = member.Value
		}
	}
	return found
}

// enableKinds lets the "enabled" of the block for one kind decide whatever
// apply_to says.
func enableKinds(values *Sandbox, where map[string]Span) {
	for _, kind := range []Kind{KindTerminal, KindTool} {
		key := KeyOf(kind, "enabled")
		if v, ok := KeyNamed(key).Get(values); ok && v.Elem().Bool() {
			applyTo := KeyOf(kind, "apply_to")
			KeyNamed(applyTo).Set(values, reflect.ValueOf(new(ApplyToBoth)))
			where[applyTo] = where[key]
		}
	}
}

// member returns the last member of that name, which is the one that counts.
func (d *decoder) member(object *hujson.Object, name, prefix string) hujson.Value {
	var found hujson.Value
	for _, member := range object.Members {
		if memberName(member) != name {
			continue
		}
		if found.Value != nil {
			severity := SeverityWarning
			if reaches(found, name) || d.owner == Sidecar {
				severity = SeverityError // the one that does not count may hold settings of ours
			}
			d.report(member.Name, severity, "", "%s is written twice; the last one counts", prefix+name)
		}
		found = member.Value
	}
	return found
}

// object returns the value as an object. It is nil if the value is absent, null
// or, with a diagnostic, of another type.
func (d *decoder) object(value hujson.Value, name string) *hujson.Object {
	if value.Value == nil || value.Value.Kind() == 'n' {
		return nil
	}
	object, ok := value.Value.(*hujson.Object)
	if !ok {
		d.report(value, SeverityError, "", "%s: expected an object, found %s", name, describe(value))
	}
	return object
}

// notOfProjects are keys about the user's own records.
var notOfProjects = []string{"audit", "audit_required", "audit_argv"}

func (d *decoder) fields(object *hujson.Object, target reflect.Value, prefix string, where map[string]Span) {
	known := map[string]reflect.Value{}
	var names []string
	for field, value := range target.Fields() {
		if kind, _ := SplitKey(prefix); kind != "" && OnlyWhole(fieldKey(field)) || fieldKey(field) == "-" {
			continue
		}
		known[fieldKey(field)] = value
		names = append(names, fieldKey(field))
	}
	seen := map[string]bool{}
	for _, member := range object.Members {
		name := memberName(member)
		key := prefix + name
		field, ok := known[name]
		if name == "$schema" {
			continue // an editor's key, which asks for nothing
		}
		if ok && d.project && slices.Contains(notOfProjects, name) {
			d.report(member.Name, SeverityWarning, key, "has no effect in a project's file, trusted or not")
			continue
		}
		if !ok {
			if kind, _ := SplitKey(prefix); kind != "" && OnlyWhole(name) {
				d.report(member.Name, SeverityError, key, "is for the whole block, not for one kind of session")
			} else if hint := Nearest(name, names); hint != "" {
				d.report(member.Name, SeverityError, key, "unknown setting, did you mean %q?", hint)
				d.doubt(prefix + hint)
			} else {
				d.report(member.Name, SeverityError, key, "unknown setting")
			}
			continue
		}
		if seen[name] {
			d.report(member.Name, SeverityError, key, "written twice; the last one counts")
		}
		seen[name] = true
		field.SetZero()
		d.value(member.Value, field, key, where)
	}
}

func (d *decoder) value(value hujson.Value, field reflect.Value, key string, where map[string]Span) {
	kind := value.Value.Kind()
	if kind == 'n' {
		return
	}
	wrong := func(expected string) {
		d.report(value, SeverityError, key, "expected %s, found %s", expected, describe(value))
	}
	at := Span{At: d.at(value.StartOffset)}
	if kind, _ := SplitKey(key); kind != "" {
		at.Written = key
	}
	if field.Kind() == reflect.Map {
		if d.credentials(value, field, key) {
			where[key] = at
		}
		return
	}
	switch element := field.Type().Elem(); element.Kind() {
	case reflect.Struct:
		object, ok := value.Value.(*hujson.Object)
		if !ok {
			wrong("an object")
			return
		}
		field.Set(reflect.New(element))
		d.fields(object, field.Elem(), key+".", where)
	case reflect.Int:
		if !d.number(value, field, key) {
			return
		}
	case reflect.Bool:
		if kind != 't' && kind != 'f' {
			wrong("true or false")
			return
		}
		field.Set(reflect.New(element))
		field.Elem().SetBool(kind == 't')
	case reflect.String:
		if field.Kind() == reflect.Slice {
			array, ok := value.Value.(*hujson.Array)
			if !ok {
				wrong("an array of strings")
				return
			}
			at.Elements = d.elements(array, field, key)
			if OfVariables(key) {
				at.Elements = d.markedVariables(field, key, at.Elements)
			}
			break
		}
		decode := func() bool { return d.enum(value, field, key, wrong) }
		if element == reflect.TypeFor[string]() {
			decode = func() bool { return d.text(value, field, key, wrong) }
		}
		if !decode() {
			return
		}
	default:
		panic(fmt.Sprintf("BUG(sandbox-sidecar): decode %s: no rule for type %s", key, field.Type()))
	}
	where[key] = at
}

// text decodes a string of any value, or limits.memory.
func (d *decoder) text(value hujson.Value, field reflect.Value, key string, wrong func(string)) bool {
	if !strings.HasSuffix(key, ".as") {
		return d.memory(value, field, key)
	}
	literal, ok := value.Value.(hujson.Literal)
	if !ok || literal.Kind() != '"' {
		wrong("a string")
		return false
	}
	text := literal.String()
	field.Set(reflect.ValueOf(&text))
	return true
}

// enum decodes a string that must be one of a few values.
func (d *decoder) enum(value hujson.Value, field reflect.Value, key string, wrong func(string)) bool {
	legal := reflect.Zero(field.Type().Elem()).Interface().(enum).Values()
	expected := make([]string, len(legal))
	for i, word := range legal {
		expected[i] = fmt.Sprintf("%q", word)
	}
	list := "one of " + strings.Join(expected, ", ")
	literal, ok := value.Value.(hujson.Literal)
	if !ok || literal.Kind() != '"' {
		wrong(list)
		return false
	}
	for _, word := range legal {
		if literal.String() == word {
			field.Set(reflect.New(field.Type().Elem()))
			field.Elem().SetString(word)
			return true
		}
	}
	d.report(value, SeverityError, key, "expected %s, found %s", list, display.Quote(literal.String()))
	return false
}

// elements decodes a list of strings. Other values are left out.
func (d *decoder) elements(array *hujson.Array, field reflect.Value, key string) []Position {
	list, positions := []string{}, []Position{}
	for _, element := range array.Elements {
		literal, ok := element.Value.(hujson.Literal)
		if !ok || literal.Kind() != '"' {
			d.report(element, SeverityError, key, "expected a string, found %s; the other entries count",
				describe(element))
			continue
		}
		list = append(list, literal.String())
		positions = append(positions, d.at(element.StartOffset))
	}
	field.Set(reflect.ValueOf(list))
	return positions
}

func (d *decoder) report(value hujson.Value, severity Severity, key, format string, args ...any) {
	d.reportAt(d.at(value.StartOffset), severity, key, format, args...)
}

func (d *decoder) reportAt(at Position, severity Severity, key, format string, args ...any) {
	problem := Diagnostic{
		Line: at.Line, Column: at.Column, Severity: severity, Key: key,
		Message: display.Line(fmt.Sprintf(format, args...)),
	}
	d.Problems = append(d.Problems, problem)
	if severity == SeverityError {
		d.doubt(key)
	}
	if severity == SeverityError &&
		(d.FirstError == nil || before(at, Position{d.FirstError.Line, d.FirstError.Column})) {
		d.FirstError = &problem
	}
}

func (d *decoder) doubt(key string) {
	if d.unclear == nil {
		d.unclear = map[string]bool{}
	}
	d.unclear[key] = true
}

func (d *decoder) fatal(offset int, format string, args ...any) *Diagnostic {
	at := d.at(offset)
	return &Diagnostic{
		Line: at.Line, Column: at.Column, Severity: SeverityError,
		Message: display.Line(fmt.Sprintf(format, args...)),
	}
}

func (d *decoder) at(offset int) Position {
	line := sort.SearchInts(d.lines, offset+1)
	return Position{line, offset - d.lines[line-1] + 1}
}

func lineStarts(data []byte) []int {
	starts := []int{0}
	for i, c := range data {
		if c == '\n' {
			starts = append(starts, i+1)
		}
	}
	return starts
}

func invalidUTF8(data []byte) int {
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return -1
}

func memberName(member hujson.ObjectMember) string {
	return member.Name.Value.(hujson.Literal).String()
}

func describe(value hujson.Value) string {
	switch value.Value.Kind() {
	case 'n':
		return "null"
	case 't', 'f':
		return "a boolean"
	case '"':
		return "a string"
	case '0':
		return "a number"
	case '[':
		return "an array"
	default:
		return "an object"
	}
}
