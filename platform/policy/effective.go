package policy

// At returns the union of what the rules grant for a path, without Write if the
// path is protected, and nothing if it is hidden. The path must be absolute and
// clean; the caller resolves symlinks. At ignores Restricted.
func (p *Policy) At(path string) Access {
	path = p.inside(path)
	if _, hidden := p.HiddenAt(path); hidden {
		return 0
	}
	var access Access
	for _, rule := range p.Rules {
		access |= p.Given(rule, path)
	}
	if _, protected := p.ProtectedAt(path); protected {
		access &^= Write
	}
	return access
}

// ProtectedAt returns the most specific protected path that contains path, if
// any. A path that git may create is not protected yet.
func (p *Policy) ProtectedAt(path string) (Protected, bool) {
	var best Protected
	found := false
	for _, protected := range p.Protected {
		if !protected.Creatable && protected.Covers(path) && (!found || len(protected.Path) > len(best.Path)) {
			best, found = protected, true
		}
	}
	return best, found
}
