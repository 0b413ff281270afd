package policy

// At returns everything that the rules grant for a path, less the writing that
// protection takes away. The path must be absolute and clean; symlinks are the
// caller's business. It does not ask whether the policy is Restricted.
func (p *Policy) At(path string) Access {
	var access Access
	for _, rule := range p.Rules {
		if Contains(rule.Path, path) {
			access |= rule.Access
		}
	}
	if _, protected := p.ProtectedAt(path); protected {
		access &^= Write
	}
	return access
}

// ProtectedAt returns the protected path that holds path, and whether there is
// one. Where several do, it is the most specific.
func (p *Policy) ProtectedAt(path string) (Protected, bool) {
	var best Protected
	found := false
	for _, protected := range p.Protected {
		if Contains(protected.Path, path) && (!found || len(protected.Path) > len(best.Path)) {
			best, found = protected, true
		}
	}
	return best, found
}
