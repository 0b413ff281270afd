require('overseer').private_setup()
