package document

import (
	"reflect"
	"slices"
	"strings"
	"sync"
)

// Key is one key of Sandbox that holds a value, such as "enabled" or
// "system_paths.executable".
type Key struct {
	Name  string
	index [][]int // field indexes, one step for each struct
	list  bool    // of strings
}

// Keys lists every key in the order of declaration, without those of the blocks
// for one kind of session. Layering and the origins iterate over it, so that a
// new field needs no change there.
//
// A variable would be filled whenever the program starts, in a stage too.
var Keys = sync.OnceValue(func() []Key {
	return slices.DeleteFunc(leavesOf(reflect.TypeFor[Sandbox](), "", nil), func(l Key) bool {
		kind, _ := SplitKey(l.Name)
		return kind != ""
	})
})

// allKeys lists the keys of the blocks for one kind, too.
var allKeys = sync.OnceValue(func() []Key { return leavesOf(reflect.TypeFor[Sandbox](), "", nil) })

func leavesOf(t reflect.Type, prefix string, index [][]int) []Key {
	var list []Key
	for field := range t.Fields() {
		key := prefix + fieldKey(field)
		path := append(append([][]int{}, index...), field.Index)
		if field.Type.Kind() == reflect.Pointer && field.Type.Elem().Kind() == reflect.Struct {
			if prefix == "" || field.Type.Elem() != t {
				list = append(list, leavesOf(field.Type.Elem(), key+".", path)...)
			}
			continue
		}
		list = append(list, Key{Name: key, index: path, list: field.Type == reflect.TypeFor[[]string]()})
	}
	return list
}

// SplitKey splits a key such as "tool.enabled" into the kind whose block it
// stands in and the key in that block. The kind is "" for a key of the whole
// block.
func SplitKey(key string) (kind Kind, name string) {
	block, name, found := strings.Cut(key, ".")
	if found && (Kind(block) == KindTool || Kind(block) == KindTerminal) {
		return Kind(block), name
	}
	return "", key
}

// KeyOf is the key of a name in the block for a kind.
func KeyOf(kind Kind, name string) string { return string(kind) + "." + name }

// Of is the same key in the block for a kind.
func (l Key) Of(kind Kind) Key { return kindKeys()[kind][l.Name] }

// kindKeys are the keys of the blocks for the kinds, by their names in a block.
var kindKeys = sync.OnceValue(func() map[Kind]map[string]Key {
	keys := map[Kind]map[string]Key{KindTool: {}, KindTerminal: {}}
	for _, l := range allKeys() {
		if kind, name := SplitKey(l.Name); kind != "" {
			keys[kind][name] = l
		}
	}
	return keys
})

// OnlyWhole reports whether a key has no place in the block for one kind.
func OnlyWhole(key string) bool {
	return key == "apply_to" || key == string(KindTool) || key == string(KindTerminal)
}

func fieldKey(field reflect.StructField) string {
	name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
	return name
}

// Get returns the value of the key, and whether it is set.
func (l Key) Get(s *Sandbox) (reflect.Value, bool) {
	v := reflect.ValueOf(s)
	for _, index := range l.index {
		if v.IsNil() {
			return reflect.Value{}, false
		}
		v = v.Elem().FieldByIndex(index)
	}
	return v, !v.IsNil()
}

// Set assigns the value and allocates the struct that holds it. Two Sandboxes
// never share a struct.
func (l Key) Set(s *Sandbox, value reflect.Value) {
	v := reflect.ValueOf(s)
	for _, index := range l.index {
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		v = v.Elem().FieldByIndex(index)
	}
	v.Set(value)
}

// Clear makes the key unset.
func (l Key) Clear(s *Sandbox) {
	if v, ok := l.Get(s); ok {
		l.Set(s, reflect.Zero(v.Type()))
	}
}

// KeyNamed returns the key of that name. It panics if there is none.
func KeyNamed(key string) Key {
	for _, l := range allKeys() {
		if l.Name == key {
			return l
		}
	}
	panic("BUG(sandbox-sidecar): no settings key " + key)
}

// IsList reports whether there is a key of that name whose value is a list.
func IsList(key string) bool {
	return slices.ContainsFunc(allKeys(), func(l Key) bool { return l.Name == key && l.list })
}

// List returns the value of a key of type []string; nil if it is not set.
func (s *Sandbox) List(key string) []string {
	v, ok := KeyNamed(key).Get(s)
	if !ok {
		return nil
	}
	return v.Interface().([]string)
}

// SetList assigns a key of type []string.
func (s *Sandbox) SetList(key string, list []string) {
	KeyNamed(key).Set(s, reflect.ValueOf(list))
}

// Clone returns a copy that shares no memory with s.
func (s *Sandbox) Clone() Sandbox {
	var copied Sandbox
	for _, l := range allKeys() {
		v, ok := l.Get(s)
		if !ok {
			continue
		}
		l.Set(&copied, cloneValue(v))
	}
	return copied
}

func cloneValue(v reflect.Value) reflect.Value {
	if v.Kind() == reflect.Pointer {
		copied := reflect.New(v.Type().Elem())
		copied.Elem().Set(v.Elem())
		return copied
	}
	if v.Kind() == reflect.Map {
		return reflect.ValueOf(cloneCredentials(v.Interface().(map[string]*Credential)))
	}
	copied := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
	reflect.Copy(copied, v)
	return copied
}
