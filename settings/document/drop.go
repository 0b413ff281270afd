package document

import (
	"bytes"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// DropEntry takes an entry out of a list of a settings file and changes no other
// byte of it: comments stay, also those beside the entry. The list stays, if empty,
// because it replaces that of the layers below. If the list that counts is not in
// the file, or has no such entry, the file stays as it is. So it does if the list of
// another key, which has what makes the entry needless, is not beside it: then the
// entry counts on other systems, or for them alone.
func DropEntry(data []byte, platform, key, entry, beside string) ([]byte, error) {
	block, problem := Decode(data, platform, Editor)
	if problem != nil || block.Empty {
		return data, nil
	}
	found := false
	changed, err := edited(data, func(root *hujson.Value) error {
		array, at := listOf(root, platform, key)
		if _, other := listOf(root, platform, beside); array == nil || other != at {
			return nil
		}
		for _, name := range platformNames {
			block := lastMember(root, name)
			if at == root && block != nil && listIn(block, beside) != nil {
				return nil // which takes the place of the whole file's
			}
		}
		found = dropFrom(array, entry)
		return nil
	})
	if err != nil || !found {
		return data, err
	}
	return changed, nil
}

// listOf is the list that counts, as editRoot finds it, and the object that holds
// its block: the file's, or that of the system; nil if there is none.
func listOf(root *hujson.Value, platform, key string) (list *hujson.Array, holder *hujson.Value) {
	for _, in := range []*hujson.Value{lastMember(root, PlatformBlock(platform)), root} {
		if value := listIn(in, key); value != nil {
			array, _ := value.Value.(*hujson.Array)
			return array, in
		}
	}
	return nil, nil
}

// listIn is the value of a key in an object that may hold the block; nil if there is
// none.
func listIn(object *hujson.Value, key string) *hujson.Value {
	for _, name := range append([]string{"terminal", "sandbox"}, strings.Split(key, ".")...) {
		object = lastMember(object, name)
	}
	return object
}

// dropFrom takes an entry out of a list. The text in front of it was that of its
// line: only comments in it stay, before what follows.
func dropFrom(array *hujson.Array, entry string) (found bool) {
	at := slices.IndexFunc(array.Elements, func(e hujson.ArrayElement) bool {
		text, is := e.Value.(hujson.Literal)
		return is && text.Kind() == '"' && text.String() == entry
	})
	if at < 0 {
		return false
	}
	gone, last := array.Elements[at], len(array.Elements)-1
	comments := bytes.TrimRight(slices.Concat(gone.BeforeExtra, gone.AfterExtra), " \t\r\n")
	comma := array.Elements[last].AfterExtra != nil // after the last
	array.Elements = slices.Delete(array.Elements, at, at+1)
	next := &array.AfterExtra
	if at < last {
		next = &array.Elements[at].BeforeExtra
	}
	if len(comments) == 0 && len(bytes.TrimSpace(*next)) == 0 {
		if at < last {
			*next = gone.BeforeExtra
		} else if at == 0 {
			*next = nil
		}
	}
	if len(comments) > 0 {
		if line := bytes.TrimLeft(*next, " \t\r"); !bytes.HasPrefix(line, []byte("\n")) {
			comments = append(comments, '\n')
		}
		*next = slices.Concat(comments, *next)
	}
	if at == last && at > 0 {
		before := &array.Elements[at-1]
		switch {
		case comma && before.AfterExtra == nil:
			before.AfterExtra = []byte{}
		case !comma:
			array.AfterExtra = slices.Concat(before.AfterExtra, array.AfterExtra)
			before.AfterExtra = nil
		}
	}
	return true
}
