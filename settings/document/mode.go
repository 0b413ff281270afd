package document

import (
	"reflect"
	"slices"
)

// A mode is a shorthand: it stands for the keys below, at the place where it
// stands. The keys beside it override them, and they override the layers below.

// modeValue is one key that a mode sets.
type modeValue struct {
	key   string
	value any // nil: at most the platform's baseline
}

// valuesOf are the keys that a mode sets. A mode that loosens sets only what it
// has to, so that it keeps what is tighter.
func valuesOf(mode Mode) []modeValue {
	restricts := func(enabled bool) []modeValue {
		return []modeValue{{"enabled", new(enabled)}, {"apply_to", new(ApplyToBoth)}}
	}
	switch mode {
	case ModeStrict:
		return append(
			restricts(true),
			modeValue{"system_paths.executable", nil},
			modeValue{"system_paths.read_only", nil},
			modeValue{"system_paths.read_write", nil},
			modeValue{"additional_executable_paths", []string{}},
			modeValue{"additional_read_only_paths", []string{}},
			modeValue{"additional_read_write_paths", []string{}},
			modeValue{"allow_network", new(false)},
			modeValue{"allowed_hosts", []string{}},
			modeValue{"allowed_unix_sockets", []string{}},
			modeValue{"toolchains", []string{}},
			modeValue{"parent_repository", new(ParentGit)},
			modeValue{"toolchain_caches", new(ToolchainCachesPrivate)},
		)
	case ModeStandard:
		return append(restricts(true), modeValue{"allow_network", new(true)})
	case ModeRelaxed:
		// What may be read may be copied into the project and run there, so that
		// running it in its place opens nothing more.
		return append(restricts(true), modeValue{"allow_network", new(true)},
			modeValue{"system_paths.executable", []string{"/"}})
	case ModeOff:
		return restricts(false)[:1]
	}
	return nil
}

// replaceModes drops what the modes of an earlier block have set, if this block
// has a mode in the same place.
func (d *decoder) replaceModes(where map[string]Span) {
	for _, l := range allKeys() {
		span := d.Spans[l.Name]
		if _, replaced := where[span.Written]; span.Mode != "" && replaced {
			l.Clear(&d.Values)
			delete(d.Spans, l.Name)
		}
	}
}

// expandModes sets the keys that the modes of a block stand for, except those
// that stand beside them.
func expandModes(values *Sandbox, where map[string]Span) {
	for _, kind := range []Kind{"", KindTerminal, KindTool} {
		in := func(name string) string {
			if kind == "" {
				return name
			}
			return KeyOf(kind, name)
		}
		mode, ok := KeyNamed(in("mode")).Get(values)
		if !ok {
			continue
		}
		for _, v := range valuesOf(Mode(mode.Elem().String())) {
			key := KeyNamed(in(v.key))
			if _, beside := where[key.Name]; beside || kind != "" && OnlyWhole(v.key) {
				continue
			}
			span := where[in("mode")]
			span.Written, span.Mode = in("mode"), Mode(mode.Elem().String())
			if list, is := v.value.([]string); is {
				span.Elements = slices.Repeat([]Position{span.At}, len(list))
			}
			if span.Baseline = v.value == nil; !span.Baseline {
				key.Set(values, reflect.ValueOf(v.value))
			}
			where[key.Name] = span
		}
	}
}

// Beside are the keys of a block that say something else than a mode would, and
// that count more if the block gets it. What is sandboxed is not among them.
func (d *Block) Beside(mode Mode) []string {
	var keys []string
	for _, v := range valuesOf(mode) {
		if OnlyWhole(v.key) || v.key == "enabled" {
			continue
		}
		for _, key := range []string{v.key, KeyOf(KindTerminal, v.key), KeyOf(KindTool, v.key)} {
			if _, set := d.Spans[key]; !set {
				continue
			}
			if value, _ := KeyNamed(key).Get(&d.Values); !reflect.DeepEqual(value.Interface(), v.value) {
				keys = append(keys, key)
			}
		}
	}
	return keys
}
