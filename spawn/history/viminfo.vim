
" Written by sandbox-sidecar.
if exists('+viminfofile') && $SANDBOX_SIDECAR_VIMINFO != ''
	let &viminfofile = $SANDBOX_SIDECAR_VIMINFO
endif
