package policy

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
