package opener

import "slices"

// keyLength is the length of the beginnings by which placeholders are found; none is
// shorter.
const keyLength = 8

// finder finds placeholders in texts.
type finder struct {
	exact map[string]*Secret
	begin map[string][]*Secret // by the first bytes, longest first
}

func newFinder(secrets []*Secret) finder {
	f := finder{exact: map[string]*Secret{}, begin: map[string][]*Secret{}}
	for _, s := range secrets {
		if len(s.Placeholder) < keyLength {
			panic("BUG(sandbox-sidecar): a placeholder of " + s.Name + " that is too short")
		}
		f.exact[s.Placeholder] = s
		key := s.Placeholder[:keyLength]
		f.begin[key] = append(f.begin[key], s)
	}
	for _, list := range f.begin {
		slices.SortFunc(list, func(a, b *Secret) int { return len(b.Placeholder) - len(a.Placeholder) })
	}
	return f
}

// is returns the secret whose placeholder the text is; nil if there is none.
func (f finder) is(text string) *Secret { return f.exact[text] }

// in returns a secret whose placeholder is in the text; nil if there is none.
func (f finder) in(text string) *Secret {
	for i := 0; i+keyLength <= len(text); i++ {
		for _, s := range f.begin[text[i:i+keyLength]] {
			if rest := text[i:]; len(rest) >= len(s.Placeholder) && rest[:len(s.Placeholder)] == s.Placeholder {
				return s
			}
		}
	}
	return nil
}
