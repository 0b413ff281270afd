package policy

// ProtectedAt returns the most specific protected path that contains path, if
// any. A path that git may create is not protected yet.
func (p *Policy) ProtectedAt(path string) (Protected, bool) {
	var best Protected
	found := false
	for i := range p.Protected {
		protected := p.Protected[i]
		covers := !protected.Creatable && protected.Covers(path) && !p.reopens(&protected, path)
		if covers && (!found || len(protected.Path) > len(best.Path)) {
			best, found = protected, true
		}
	}
	return best, found
}
